package acceptance

import (
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// A failing forever row stays queued and is tried until it succeeds. The time
// between two attempts is measured where they arrive.
func foreverRow(t *testing.T, l lane) {
	h := l.hook(t, "status500", "forever")
	r := queue(t, l.Site, h, l.object, forever)
	failed := await(t, l.Site, r.PHID, "queued", "fail")
	if ended(failed) != httpError("500") || failed.LastEpoch == 0 {
		t.Errorf("after a failure: %s, lastRequestEpoch %d", failed.Properties, failed.LastEpoch)
	}
	l.receiver.Await(t, "forever", 3, patience)
	if err := l.SetHookURI(t.Context(), h.PHID, l.receiver.URL("status200", "forever")); err != nil {
		t.Fatal(err)
	}
	await(t, l.Site, r.PHID, "sent", "okay")
	got := l.receiver.Case("forever")
	for i := range got[1:] {
		if gap := got[i+1].At.Sub(got[i].At); gap < backoff {
			t.Errorf("attempt %d came %v after the one before, the backoff is %v", i+2, gap, backoff)
		}
	}
	for _, again := range got[1:] { // the row's dateCreated is the epoch, also on a retry
		if first, next := scenario.ParseWire(got[0].Raw), scenario.ParseWire(again.Raw); first.Body != next.Body {
			t.Errorf("a retry with another body:\n%s\n%s", first.Body, next.Body)
		}
	}
}

func neverRow(t *testing.T, l lane) {
	for behaviour, want := range map[string]string{"status500": httpError("500"), "close": httpError("52"), "hang": timedOut} {
		r := queue(t, l.Site, l.hook(t, behaviour, "never-"+behaviour), l.object, never)
		if got := await(t, l.Site, r.PHID, "failed", "fail"); ended(got) != want {
			t.Errorf("%s: %s", behaviour, ended(got))
		}
	}
	scenario.Never(t, backoff+time.Second, "a never row is sent again", func() bool {
		return len(l.receiver.Case("never-status500"))+len(l.receiver.Case("never-close"))+len(l.receiver.Case("never-hang")) > 3
	})
}

// What the hook itself makes impossible fails for good, also a forever row,
// with Phorge's words for it; no receiver hears of it.
func configurationFailures(t *testing.T, l lane) {
	good := l.receiver.URL("status200", "misconfigured")
	for name, c := range map[string]struct {
		hook   devstack.Hook
		object string
		code   string
	}{
		"disabled":              {devstack.Hook{URI: good, Status: "disabled"}, l.object, "disabled"},
		"disabled goes first":   {devstack.Hook{URI: "nonsense", Status: "disabled"}, "PHID-TASK-zzzzzzzzzzzzzzzzzzzz", "disabled"},
		"no URI":                {devstack.Hook{URI: ""}, l.object, "uri"},
		"another scheme":        {devstack.Hook{URI: "ftp://127.0.0.1/x"}, l.object, "uri"},
		"URI before object":     {devstack.Hook{URI: "nonsense"}, "PHID-TASK-zzzzzzzzzzzzzzzzzzzz", "uri"},
		"object does not exist": {devstack.Hook{URI: good}, "PHID-TASK-zzzzzzzzzzzzzzzzzzzz", "object"},
		"object has no type":    {devstack.Hook{URI: good}, "nonsense", "object"},
	} {
		c.hook.Name = name
		h, err := l.CreateHook(t.Context(), c.hook)
		if err != nil {
			t.Fatal(err)
		}
		r := queue(t, l.Site, h, c.object, forever)
		got := await(t, l.Site, r.PHID, "failed", "none")
		if ended(got) != hookError(c.code) || got.LastEpoch != 0 {
			t.Errorf("%s: %s, lastRequestEpoch %d", name, ended(got), got.LastEpoch)
		}
	}
	if n := len(l.receiver.Case("misconfigured")); n > 0 {
		t.Errorf("%d requests", n)
	}
}

// The recorded case retry-fail-then-ok: the hook's URI changes between rounds.
func threeRounds(t *testing.T, l lane) {
	h := l.hook(t, "status500", "rounds")
	r := queue(t, l.Site, h, l.object, forever)
	await(t, l.Site, r.PHID, "queued", "fail")
	point := func(behaviour string) {
		if err := l.SetHookURI(t.Context(), h.PHID, l.receiver.URL(behaviour, "rounds")); err != nil {
			t.Fatal(err)
		}
	}
	point("hang")
	scenario.Until(t, patience, "the second round ends in silence", func() bool { return ended(row(t, l.Site, r.PHID)) == timedOut })
	point("status200")
	if got := await(t, l.Site, r.PHID, "sent", "okay"); ended(got) != httpError("200") {
		t.Errorf("in the end: %s", got.Properties)
	}
	var rounds []string
	for _, got := range l.receiver.Case("rounds") {
		rounds = append(rounds, got.Behaviour)
	}
	if got := strings.Join(rounds, " "); got != "status500 hang status200" {
		t.Errorf("rounds: %s", got)
	}
}

// Ten rows with a failure in the window and the hook rests: the other rows
// stay as they are, to the last column, and so do the ten.
func breaker(t *testing.T, l lane) {
	h := l.hook(t, "status500", "breaker")
	var rows []devstack.Row
	for range 12 {
		rows = append(rows, queue(t, l.Site, h, l.object, forever))
	}
	failed := func() (n int) {
		for _, r := range rows {
			if row(t, l.Site, r.PHID).LastResult == "fail" {
				n++
			}
		}
		return n
	}
	scenario.Until(t, patience, "ten rows fail", func() bool { return failed() >= 10 })
	scenario.Until(t, patience, "the breaker is said to be open", func() bool { return len(l.serve.Log.Find("breaker open", h.PHID)) == 1 })
	sent := len(l.receiver.Case("breaker"))
	var before []devstack.Row
	for _, r := range rows {
		before = append(before, row(t, l.Site, r.PHID))
	}
	scenario.Never(t, 2*backoff+time.Second, "a request or a write for a stopped hook", func() bool {
		for _, b := range before {
			if row(t, l.Site, b.PHID) != b {
				return true
			}
		}
		return len(l.receiver.Case("breaker")) != sent
	})
	if n := failed(); n != 10 {
		t.Errorf("%d rows failed, want 10 and two untouched", n)
	}
	if n := len(l.serve.Log.Find("breaker", h.PHID)); n != 1 {
		t.Errorf("%d lines about the breaker, want one", n)
	}
}

// A call of somebody else's is under way when the hook is created: Waybill has
// to wait for it, however long it takes, and deliver right after.
func lockHeld(t *testing.T, l lane) {
	phorge := scenario.NewPhorgeWorker(t, l.Phorge)
	phid := devstack.NewPHID("HWBH")
	if !phorge.Lock(t, phid) {
		t.Fatal("the lock of a hook that does not exist is held")
	}
	h, err := l.CreateHook(t.Context(), devstack.Hook{PHID: phid, URI: l.receiver.URL("status200", "lock-held")})
	if err != nil {
		t.Fatal(err)
	}
	rows := []devstack.Row{queue(t, l.Site, h, l.object, forever), queue(t, l.Site, h, l.object, never)}
	scenario.Never(t, 4*time.Second, "a request or a write while another session has the lock", func() bool {
		return len(l.receiver.Case("lock-held")) > 0 || row(t, l.Site, rows[0].PHID) != rows[0] || row(t, l.Site, rows[1].PHID) != rows[1]
	})
	phorge.Unlock(t, phid)
	for _, r := range rows {
		await(t, l.Site, r.PHID, "sent", "okay")
	}
	if n := len(l.receiver.Case("lock-held")); n != len(rows) {
		t.Errorf("%d requests for %d rows", n, len(rows))
	}
}

// The recorded case silent-mode-never: Phorge marks the row itself.
func silencedRow(t *testing.T, l lane) {
	h := l.hook(t, "status200", "silenced")
	silenced := insert(t, l.Site, devstack.Row{
		HookPHID: h.PHID, ObjectPHID: l.object, Status: "failed", Age: time.Hour,
		Properties: strings.TrimSuffix(never, "}") + hookError("silent"),
	})
	after := queue(t, l.Site, h, l.object, never)
	await(t, l.Site, after.PHID, "sent", "okay")
	if got := row(t, l.Site, silenced.PHID); got != silenced {
		t.Errorf("the row changed:\n got %+v\nwant %+v", got, silenced)
	}
}

// A hook that is disabled and enabled again, pointed elsewhere, and deleted
// with rows in its queue.
func hookChanges(t *testing.T, l lane) {
	h := l.hook(t, "status200", "changing")
	await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "sent", "okay")
	set := func(column, value string) {
		execSQL(t, l.Site, "UPDATE "+l.Database("herald")+".herald_webhook SET "+column+" = ? WHERE phid = ?", value, h.PHID)
	}
	set("status", "disabled")
	await(t, l.Site, queue(t, l.Site, h, l.object, forever).PHID, "failed", "none")
	set("status", "firehose")
	set("webhookURI", l.receiver.URL("status200", "changed"))
	set("hmacKey", "another-key")
	await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "sent", "okay")
	w := scenario.ParseWire(l.receiver.Await(t, "changed", 1, patience)[0].Raw)
	if want := sign("another-key", w.Body); w.Signature() != hexadecimal(want) {
		t.Errorf("signature %s after the key changed", w.Signature())
	}
	execSQL(t, l.Site, "DELETE FROM "+l.Database("herald")+".herald_webhook WHERE phid = ?", h.PHID)
	left := queue(t, l.Site, h, l.object, never)
	phorge := scenario.NewPhorgeWorker(t, l.Phorge)
	scenario.Until(t, patience, "the lock of a deleted hook is given back", func() bool { return !phorge.Held(t, h.PHID) })
	scenario.Until(t, patience, "the hook's workflow ends", func() bool { return l.Closed(t, "hook/"+h.PHID) })
	if got := row(t, l.Site, left.PHID); got != left {
		t.Errorf("a row without a hook changed: %+v", got)
	}
}

// Phorge's garbage collector takes rows at any moment, also between attempts.
func collectedRow(t *testing.T, l lane) {
	h := l.hook(t, "status500", "collected")
	r := queue(t, l.Site, h, l.object, forever)
	await(t, l.Site, r.PHID, "queued", "fail")
	if err := l.Collect(t.Context(), r.PHID); err != nil {
		t.Fatal(err)
	}
	scenario.Until(t, patience, "the delivery ends", func() bool { return l.Closed(t, "request/"+r.PHID) })
	var result struct{ Outcome string }
	if err := l.Temporal.GetWorkflow(t.Context(), "request/"+r.PHID, "").Get(t.Context(), &result); err != nil || result.Outcome != "collected" {
		t.Errorf("outcome %q, %v", result.Outcome, err)
	}
	if n := len(l.receiver.Case("collected")); n != 1 {
		t.Errorf("%d requests", n)
	}
}
