package acceptance

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/egress/rawsink"
	"waybill/test/scenario"
)

// crowd is a load on some hooks whose requests can be told apart row by row,
// whoever makes them: Waybill's name the row's object, the player's the row.
type crowd struct {
	*scenario.Site
	receiver *scenario.Receiver
	phorge   *scenario.PhorgeWorker
	hooks    []devstack.Hook
	rows     []devstack.Row
}

func newCrowd(t *testing.T, s *scenario.Site, hooks int) *crowd {
	t.Helper()
	c := &crowd{Site: s, receiver: scenario.NewReceiver(t, nil, time.Now), phorge: scenario.NewPhorgeWorker(t, s.Phorge)}
	for i := range hooks {
		c.hooks = append(c.hooks, hook(t, s, c.receiver.URL("status200", fmt.Sprint("crowd-", i))))
	}
	return c
}

// queue adds n rows for each hook.
func (c *crowd) queue(t *testing.T, n int) {
	t.Helper()
	for range n {
		for _, h := range c.hooks {
			c.rows = append(c.rows, queue(t, c.Site, h, task(t, c.Site), forever))
		}
	}
}

// play lets Phorge's worker run its tasks until every row is done with.
func (c *crowd) play(t *testing.T) {
	t.Helper()
	left := slices.Clone(c.rows)
	scenario.Until(t, patience, func() string { return fmt.Sprintf("Phorge has no tasks left; it has %d", len(left)) }, func() bool {
		left = slices.DeleteFunc(left, func(r devstack.Row) bool { return c.phorge.Turn(t, r.PHID) == scenario.Archived })
		return len(left) == 0
	})
}

// repeated checks that every row was sent and counts what was sent again.
func (c *crowd) repeated(t *testing.T) (n int) {
	t.Helper()
	got := c.receiver.Requests()
	for _, r := range c.rows {
		about := func(q rawsink.Request) bool {
			return bytes.Contains(q.Raw, []byte(r.ObjectPHID)) || bytes.Contains(q.Raw, []byte(r.PHID))
		}
		requests := 0
		for _, q := range got {
			if about(q) {
				requests++
			}
		}
		if status := row(t, c.Site, r.PHID).Status; requests == 0 || status != "sent" {
			t.Errorf("a row is %s after %d requests", status, requests)
		}
		n += max(0, requests-1)
	}
	return n
}

// ordered checks that on no hook Waybill called after Phorge had begun to.
func (c *crowd) ordered(t *testing.T) {
	t.Helper()
	for i := range c.hooks {
		phorges := false
		for _, q := range c.receiver.Case(fmt.Sprint("crowd-", i)) {
			mine := bytes.Contains(q.Raw, []byte(scenario.CallerName))
			if phorges && !mine {
				t.Errorf("hook %d: Waybill called after Phorge had taken over", i)
			}
			phorges = phorges || mine
		}
		if !phorges {
			t.Errorf("hook %d: Phorge did not take over", i)
		}
	}
}

// The host that runs Waybill vanishes from the network of the database and of
// Temporal under load; receivers it can still reach. The server keeps its locks
// until the session is silent for 10 s, then Phorge delivers the rest. By then
// the POST that was under way has been cut off, and none is made any more.
func TestAVanishedHostIsSilentBeforeItsLocksAreFree(t *testing.T) {
	t.Parallel()
	site, gate := scenario.NewSite(t, &program), scenario.NewGate(t)
	cables := site.NewCables(t)
	c := newCrowd(t, site, 3)
	slow := hook(t, site, gate.URL())
	// Longer than the server keeps the locks: nothing but the loss ends the POST.
	serve := site.Serve(t, site.Through(t, cables, map[string]string{"WAYBILL_HERALD_DELIVERY_TIMEOUT": "25s"}))
	underWay := queue(t, site, slow, task(t, site), forever)
	gate.AwaitCall(t)
	c.queue(t, 40)
	scenario.Until(t, patience, "the load is under way", func() bool { return len(c.receiver.Requests()) > 10 })
	cables.MariaDB.Freeze()
	cables.Temporal.Freeze()
	gate.Open(200)
	t.Logf("vanished after %d of %d requests", len(c.receiver.Requests()), len(c.rows))
	scenario.Until(t, patience, "Phorge gets the slow hook", func() bool { return c.phorge.Turn(t, underWay.PHID) == scenario.Called })
	if most, calls := gate.Most(), gate.Calls(); most != 1 || calls != 2 {
		t.Errorf("%d calls, %d at once; want the one that was cut off, and then Phorge's", calls, most)
	}
	c.play(t)
	c.ordered(t)
	if n := c.repeated(t); n > len(c.hooks) {
		t.Errorf("%d repeats, want one for each of the %d hooks at most", n, len(c.hooks))
	}
	serve.Log.Await(t, patience, 1, "the lock session cannot be kept")
	before := len(c.receiver.Requests())
	cables.MariaDB.Thaw()
	cables.Temporal.Thaw()
	scenario.Until(t, 2*patience, "Waybill has its locks again", func() bool { return c.phorge.Held(t, c.hooks[0].PHID) })
	await(t, site, queue(t, site, c.hooks[0], task(t, site), forever).PHID, "sent", "okay")
	if after := len(c.receiver.Requests()); after != before+1 || gate.Calls() != 2 {
		t.Errorf("%d requests for one new row after the return, %d calls of the slow hook", after-before, gate.Calls())
	}
}

// killLockHolder ends the session that has a hook's lock.
func killLockHolder(t *testing.T, s *scenario.Site, h devstack.Hook) {
	t.Helper()
	var holder int64
	scenario.Until(t, patience, "somebody has the hook's lock", func() bool {
		err := s.DB.QueryRowContext(t.Context(), "SELECT COALESCE(IS_USED_LOCK(?), 0)", scenario.LockName(s.Namespace, h.PHID)).Scan(&holder)
		return err == nil && holder > 0
	})
	execSQL(t, s, fmt.Sprint("KILL ", holder))
}

// The session with the locks is killed again and again under load, and Phorge
// takes what it can get meanwhile. What was in flight may be sent again, nothing
// else is.
func TestAKilledLockConnectionRepeatsWhatWasInFlightAtMost(t *testing.T) {
	t.Parallel()
	site, gate := scenario.NewSite(t, &program), scenario.NewGate(t)
	c := newCrowd(t, site, 3)
	slow := hook(t, site, gate.URL())
	serve := site.Serve(t, map[string]string{"WAYBILL_HERALD_DELIVERY_TIMEOUT": "25s"})
	underWay := queue(t, site, slow, task(t, site), forever)
	gate.AwaitCall(t)
	gate.Open(200)
	const kills = 4
	for range kills {
		for _, h := range c.hooks {
			scenario.Until(t, 2*patience, "Waybill has the lock", func() bool { return c.phorge.Held(t, h.PHID) })
		}
		begun := len(c.receiver.Requests())
		c.queue(t, 10)
		scenario.Until(t, patience, "Waybill sends", func() bool { return len(c.receiver.Requests()) > begun+5 })
		killLockHolder(t, site, c.hooks[0])
		scenario.Until(t, patience, "the slow hook's row is done with", func() bool {
			return c.phorge.Turn(t, underWay.PHID) == scenario.Archived
		})
		c.play(t)
	}
	if n := gate.Calls(); n != 2 {
		t.Errorf("%d calls for the row whose POST was under way at the first kill, want it and Phorge's", n)
	}
	if n := c.repeated(t); n > kills*len(c.hooks) {
		t.Errorf("%d repeats, want one for each of %d hooks and %d kills at most", n, len(c.hooks), kills)
	} else {
		t.Logf("%d requests for %d rows", len(c.receiver.Requests()), len(c.rows))
	}
	if code := serve.Stop(t); code != 0 {
		t.Errorf("the stop ended with %d", code)
	}
}

// Phorge saves without a guard. Where its save comes before Waybill's result,
// Phorge's stands, and Waybill says so in its log and in the workflow.
func TestWhatPhorgeSavedMeanwhileStandsAndIsReported(t *testing.T) {
	t.Parallel()
	site := scenario.NewSite(t, &program)
	cables := site.NewCables(t)
	c := newCrowd(t, site, 1)
	h := c.hooks[0]
	serve := site.Serve(t, site.Through(t, cables, nil))
	if err := site.SetHookURI(t.Context(), h.PHID, c.receiver.URL("status500", "crowd-0")); err != nil {
		t.Fatal(err)
	}
	held := cables.MariaDB.Hold(scenario.Question, resultStatement)
	c.queue(t, 1)
	r := c.rows[0]
	held.Await(t)
	if err := site.SetHookURI(t.Context(), h.PHID, c.receiver.URL("status200", "crowd-0")); err != nil {
		t.Fatal(err)
	}
	killLockHolder(t, site, h)
	scenario.Until(t, patience, "Phorge gets the lock", func() bool { return c.phorge.Turn(t, r.PHID) == scenario.Called })
	saved := row(t, site, r.PHID)
	held.Release()
	scenario.Until(t, patience, "the delivery ends", func() bool { return site.Closed(t, "request/"+r.PHID) })
	if got := outcome(t, site, r); got != "overtaken" {
		t.Errorf("the workflow's outcome is %q", got)
	}
	if got := row(t, site, r.PHID); got != saved || got.Status != "sent" {
		t.Errorf("the row after Phorge's save:\n got %+v\nwant %+v", got, saved)
	}
	lines := serve.Log.Await(t, patience, 1, "attempt", r.PHID)
	if len(lines) != 1 || lines[0].Text("state") != "overtaken" || lines[0].Text("level") != "warn" {
		t.Errorf("the log says %v", lines)
	}
}
