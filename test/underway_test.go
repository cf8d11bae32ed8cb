package acceptance

import (
	"fmt"
	"slices"
	"testing"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// change is what somebody does to a row or its hook under way.
type change string

// All changes. A row is put back as a person's SQL does it; with a new
// dateModified nobody can tell it from a claim of somebody else's.
const (
	collected   change = "the row is collected"
	finished    change = "Phorge finishes the row"
	putBack     change = "the row is put back"
	putBackAnew change = "the row is put back with a new dateModified"
	disabled    change = "the hook is disabled"
	moved       change = "the hook's URI changes"
	rekeyed     change = "the hook's key changes"
	deleted     change = "the hook is deleted"
)

// The key and the path after their change.
const (
	newKey  = "another-key"
	newPath = "/moved"
)

// make makes the change; the row's in the transaction that keeps it, if any.
func (c change) make(t *testing.T, s *story) {
	t.Helper()
	requests, hooks := s.requests(), s.Database("herald")+".herald_webhook"
	what := map[change][]any{
		collected: {"DELETE FROM " + requests + " WHERE phid = ?"},
		finished: {"UPDATE " + requests + " SET status = 'sent', lastRequestResult = 'okay'," +
			" lastRequestEpoch = UNIX_TIMESTAMP(), dateModified = GREATEST(dateModified + 1, UNIX_TIMESTAMP()) WHERE phid = ?"},
		putBack: {"UPDATE " + requests + " SET status = 'queued', lastRequestResult = 'none' WHERE phid = ?"},
		putBackAnew: {"UPDATE " + requests + " SET status = 'queued', lastRequestResult = 'none'," +
			" dateModified = GREATEST(dateModified + 1, UNIX_TIMESTAMP()) WHERE phid = ?"},
		disabled: {"UPDATE " + hooks + " SET status = 'disabled' WHERE phid = ?"},
		moved:    {"UPDATE " + hooks + " SET webhookURI = ? WHERE phid = ?", s.booth.url(newPath)},
		rekeyed:  {"UPDATE " + hooks + " SET hmacKey = ? WHERE phid = ?", newKey},
		deleted:  {"DELETE FROM " + hooks + " WHERE phid = ?"},
	}[c]
	db, phid := s.db, s.row.PHID
	if slices.Contains([]change{disabled, moved, rekeyed, deleted}, c) {
		db, phid = s.DB, s.hook.PHID
	}
	if _, err := db.ExecContext(t.Context(), what[0].(string), append(what[1:], phid)...); err != nil {
		t.Fatal(err)
	}
}

// ending is how a story must end.
type ending struct {
	// calls are those about the row.
	calls int
	// row is status, result and the errors in the properties; empty: it is gone.
	row string
	// outcome is that of the newest run, empty where none was ever started.
	outcome string
	// said is the state in the log of the attempt that was under way.
	said string
}

// The rows that stories end with.
var (
	sentByWaybill = "sent/okay" + httpError("200")
	sentByPhorge  = "sent/okay" // the player saves no errors
	byDisabling   = "failed/none" + hookError("disabled")
	leftFailed    = "queued/fail" + httpError("500")
)

// endings is a total table: every change at every moment.
var endings = map[string]map[change]ending{
	"waiting in the queue": {
		collected:   {},
		finished:    {row: sentByPhorge},
		putBack:     {calls: 1, row: sentByWaybill, outcome: "delivered", said: "recorded"},
		putBackAnew: {calls: 1, row: sentByWaybill, outcome: "delivered", said: "recorded"},
		disabled:    {row: byDisabling, outcome: "failed"},
		moved:       {calls: 1, row: sentByWaybill, outcome: "delivered", said: "recorded"},
		rekeyed:     {calls: 1, row: sentByWaybill, outcome: "delivered", said: "recorded"},
		deleted:     {row: "queued/none", outcome: "unprocessable"},
	},
	"during the POST": {
		collected:   {calls: 1, outcome: "collected", said: "vanished"},
		finished:    {calls: 1, row: sentByPhorge, outcome: "overtaken", said: "overtaken"},
		putBack:     {calls: 2, row: sentByWaybill, outcome: "delivered", said: "recorded"},
		putBackAnew: {calls: 2, row: sentByWaybill, outcome: "delivered", said: "overtaken"},
		disabled:    {calls: 1, row: byDisabling, outcome: "failed", said: "recorded"},
		moved:       {calls: 2, row: sentByWaybill, outcome: "delivered", said: "recorded"},
		rekeyed:     {calls: 2, row: sentByWaybill, outcome: "delivered", said: "recorded"},
		deleted:     {calls: 1, row: leftFailed, outcome: "unprocessable", said: "recorded"},
	},
	"before the result write": {
		collected:   {calls: 1, outcome: "collected", said: "vanished"},
		finished:    {calls: 1, row: sentByPhorge, outcome: "overtaken", said: "overtaken"},
		putBack:     {calls: 2, row: sentByWaybill, outcome: "delivered", said: "recorded"},
		putBackAnew: {calls: 2, row: sentByWaybill, outcome: "delivered", said: "overtaken"},
		disabled:    {calls: 1, row: byDisabling, outcome: "failed", said: "recorded"},
		moved:       {calls: 2, row: sentByWaybill, outcome: "delivered", said: "recorded"},
		rekeyed:     {calls: 2, row: sentByWaybill, outcome: "delivered", said: "recorded"},
		deleted:     {calls: 1, row: leftFailed, outcome: "unprocessable", said: "recorded"},
	},
	"during the write-back": {
		collected:   {calls: 1, outcome: "collected", said: "unwritten"},
		finished:    {calls: 1, row: sentByPhorge, outcome: "overtaken", said: "unwritten"},
		putBack:     {calls: 2, row: sentByWaybill, outcome: "delivered", said: "unwritten"},
		putBackAnew: {calls: 2, row: sentByWaybill, outcome: "delivered", said: "unwritten"},
		disabled:    {calls: 1, row: byDisabling, outcome: "failed", said: "unwritten"},
		moved:       {calls: 2, row: sentByWaybill, outcome: "delivered", said: "unwritten"},
		rekeyed:     {calls: 2, row: sentByWaybill, outcome: "delivered", said: "unwritten"},
		deleted:     {calls: 1, row: leftFailed, outcome: "unprocessable", said: "unwritten"},
	},
	"during the rest": {
		collected: {calls: 1, outcome: "collected", said: "recorded"},
		// The run reads from the row that it is sent.
		finished:    {calls: 1, row: "sent/okay" + httpError("500"), outcome: "delivered", said: "recorded"},
		putBack:     {calls: 2, row: sentByWaybill, outcome: "delivered", said: "recorded"},
		putBackAnew: {calls: 2, row: sentByWaybill, outcome: "delivered", said: "recorded"},
		disabled:    {calls: 1, row: byDisabling, outcome: "failed", said: "recorded"},
		moved:       {calls: 2, row: sentByWaybill, outcome: "delivered", said: "recorded"},
		rekeyed:     {calls: 2, row: sentByWaybill, outcome: "delivered", said: "recorded"},
		deleted:     {calls: 1, row: leftFailed, outcome: "unprocessable", said: "recorded"},
	},
}

// notes are what the log says once about outcomes without an attempt's result.
var notes = map[string]string{"failed": "request failed by its hook's settings", "unprocessable": "request cannot be processed"}

// waitingInTheQueue is a row behind another one whose call is under way.
func waitingInTheQueue(t *testing.T, g ground) *story {
	s := newStory(t, g)
	queue(t, s.Site, s.hook, task(t, s.Site), never)
	s.booth.awaitCall(t)
	s.queue(t)
	return s
}

// Rows and hooks change at any moment. Each story ends as the row and the hook
// say: a change of the hook counts from the next attempt on, one of the row
// stands against a result that comes late.
func TestChangesUnderWayEndAsTheRowSays(t *testing.T) {
	t.Parallel()
	settings := patient(backoff.String())
	// A write that waits for its row lasts longer than it takes to see it wait, to
	// change the row and to commit. 5 s to start, 6 s for the exchange and 5 s for
	// the write are a lease of 16 s.
	settings["WAYBILL_HERALD_DELIVERY_TIMEOUT"], settings["WAYBILL_HERALD_WRITE_ALLOWANCE"] = "6s", "5s"
	shared := newLane(t, settings)
	places := moments()
	places["waiting in the queue"] = moment{reach: waitingInTheQueue}
	for when, changes := range endings {
		for what, want := range changes {
			t.Run(when+"/"+string(what), func(t *testing.T) {
				t.Parallel()
				s := places[when].reach(t, ground{lane: shared})
				what.make(t, s)
				s.goOn()
				s.endsAs(t, want)
				s.calledAs(t, what)
			})
		}
	}
}

// endsAs waits for the end and compares it.
func (s *story) endsAs(t *testing.T, want ending) {
	t.Helper()
	var got ending
	// A row that was put back waits for a lease, and then for the next look.
	scenario.Until(t, 2*patience, func() string { return "it ends as wanted; it is " + sprint(got) + ", want " + sprint(want) }, func() bool {
		got = ending{calls: s.booth.about(s.row.ObjectPHID), row: s.stands(t), outcome: s.outcome(t), said: s.said()}
		return got == want
	})
	if note := notes[want.outcome]; note != "" && len(s.serve.Log.Await(t, patience, 1, note, s.row.PHID)) != 1 {
		t.Errorf("several lines %q", note)
	}
	// What must not come would come with the next look for work: a row queued
	// behind this one, for a hook that is still there.
	if h := row(t, s.Site, s.row.PHID); h.Status == "queued" {
		return
	}
	next := queue(t, s.Site, s.hook, task(t, s.Site), never)
	scenario.Until(t, patience, "the hook goes on", func() bool { return row(t, s.Site, next.PHID).Status != "queued" })
	if n := s.booth.about(s.row.ObjectPHID); n != want.calls || s.stands(t) != want.row {
		t.Errorf("%d calls, row %q after its end; want %d, %q", n, s.stands(t), want.calls, want.row)
	}
}

func sprint(e ending) string {
	return fmt.Sprintf("%+v", e)
}

// stands is how the row stands, empty when it is gone.
func (s *story) stands(t *testing.T) string {
	t.Helper()
	r := row(t, s.Site, s.row.PHID)
	if r == (devstack.Row{}) {
		return ""
	}
	_, errors := splitErrors(r.Properties)
	if errors == "}" {
		errors = ""
	}
	return r.Status + "/" + r.LastResult + errors
}

// outcome is how the newest run ended, empty while it is open or where none is.
func (s *story) outcome(t *testing.T) string {
	t.Helper()
	var result struct{ Outcome string }
	if s.Closed(t, s.request()) {
		_ = s.Temporal.GetWorkflow(t.Context(), s.request(), "").Get(t.Context(), &result)
	}
	return result.Outcome
}

// said is the state of the first attempt's line in the log.
func (s *story) said() string {
	lines := s.serve.Log.Find("attempt", s.row.PHID)
	if len(lines) == 0 {
		return ""
	}
	return lines[0].Text("state")
}

// calledAs checks where the calls about the row went and what signed them: only
// a call that began after the change knows it.
func (s *story) calledAs(t *testing.T, what change) {
	t.Helper()
	begun := s.booth.calls()[0].object == s.row.ObjectPHID
	for i, v := range s.booth.calls() {
		if v.object != s.row.ObjectPHID {
			continue
		}
		path, key := "/", s.hook.Key
		if before := begun && i == 0; !before && what == moved {
			path = newPath
		} else if !before && what == rekeyed {
			key = newKey
		}
		if v.path != path || v.signature != hexadecimal(sign(key, v.body)) {
			t.Errorf("call %d went to %s; or its key is not the one of its time", i+1, v.path)
		}
	}
}
