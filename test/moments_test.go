package acceptance

import (
	"context"
	"database/sql"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// story is one request, a forever row, brought to a moment of its first
// attempt. The receiver answers that attempt with 500 and the next with 200, so
// whatever an operator does, two calls in all are right: one lost or doubled
// attempt shows.
type story struct {
	lane
	booth *booth
	hook  devstack.Hook
	row   devstack.Row
	// goOn takes away what keeps the story at its moment.
	goOn func()
	// deaf: no process hears of anything before goOn.
	deaf bool
	// young: the run's first workflow task has not ended, so that the server has
	// nothing to set the run back to, and refuses.
	young bool
	// resting: the run waits for its next attempt.
	resting bool
	// told is the run that heard an operator's words.
	told string
	// calls are how many are right, where it is not two.
	calls int
	// db is where the row can be changed: the pool, or the transaction that keeps
	// the row.
	db execer
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// request is the id of the story's workflow.
func (s *story) request() string { return "request/" + s.row.PHID }

// moment is a phase of an attempt.
type moment struct {
	// own moments need a site of their own, because what they do to a process or
	// a server concerns all hooks.
	own   bool
	reach func(t *testing.T, g ground) *story
}

// ground is where a story takes place. Of an own site no process runs yet;
// settings are for it.
type ground struct {
	lane
	settings map[string]string
}

// moments are all phases of an attempt.
func moments() map[string]moment {
	return map[string]moment{
		"before the claim":        {own: true, reach: beforeClaim},
		"between claim and send":  {own: true, reach: betweenClaimAndSend},
		"during the POST":         {reach: duringPOST},
		"during a fast POST":      {reach: duringFastPOST},
		"before the result write": {reach: beforeWrite},
		"during the write-back":   {reach: duringWriteBack},
		"during the rest":         {reach: duringRest},
		"with the database away":  {own: true, reach: databaseAway},
	}
}

// patient are settings under which a POST may take 12 s and its write 2 s, so
// that there is time to do something meanwhile.
func patient(backoff string) map[string]string {
	return map[string]string{
		"WAYBILL_HERALD_DELIVERY_TIMEOUT": "12s", "WAYBILL_HERALD_WRITE_ALLOWANCE": "2s",
		"WAYBILL_HERALD_CLAIM_LEASE": "1s", "WAYBILL_HERALD_RETRY_BACKOFF": backoff,
	}
}

// prepare is the ground for a moment: the shared one, or a new site. There a
// lease is short, because a cut connection costs one.
func (m moment) prepare(t *testing.T, shared lane, backoff string) ground {
	t.Helper()
	if !m.own {
		return ground{lane: shared}
	}
	l := lane{Site: scenario.NewSite(t, &program)}
	l.object = task(t, l.Site)
	return ground{l, changed(patient(backoff), "WAYBILL_HERALD_DELIVERY_TIMEOUT", "2s")}
}

// newStory makes a hook that calls a booth.
func newStory(t *testing.T, g ground) *story {
	t.Helper()
	s := &story{lane: g.lane, booth: newBooth(t), db: g.DB}
	s.hook = hook(t, s.Site, s.booth.url("/"))
	s.goOn = s.booth.letGo
	return s
}

func (s *story) queue(t *testing.T) {
	t.Helper()
	s.object = task(t, s.Site)
	s.row = queue(t, s.Site, s.hook, s.object, forever)
}

// beforeClaim is a workflow that nobody runs yet: its starter has gone, and the
// ledger with it. The process to come finds the task queue by the hook.
func beforeClaim(t *testing.T, g ground) *story {
	s := newStory(t, g)
	s.deaf, s.young = true, true
	s.booth.letGo()
	s.queue(t)
	run := func(id, name string, input map[string]any) {
		o := client.StartWorkflowOptions{ID: id, TaskQueue: "waybill-before"}
		if _, err := s.Temporal.ExecuteWorkflow(t.Context(), o, name, input); err != nil {
			t.Fatal(err)
		}
	}
	run("hook/"+s.hook.PHID, "Hook", map[string]any{"phid": s.hook.PHID})
	run(s.request(), "Request", map[string]any{"id": s.row.ID, "phid": s.row.PHID, "hook": s.hook.PHID})
	s.goOn = func() { s.serve = s.Serve(t, g.settings) }
	return s
}

// betweenClaimAndSend holds the way to Temporal while the claim is made: the
// task that is to send cannot be given to anybody. The claim waits for the row
// until the way is held, and the row for its hook's lock until it is kept.
func betweenClaimAndSend(t *testing.T, g ground) *story {
	temporal, phorge := scenario.NewCable(t, g.TemporalAddress), scenario.NewPhorgeWorker(t, g.Phorge)
	g.serve = g.Serve(t, changed(g.settings, "WAYBILL_TEMPORAL_ADDRESS", temporal.Addr()))
	s := &story{lane: g.lane, booth: newBooth(t), deaf: true, young: true, goOn: temporal.Thaw}
	s.booth.letGo()
	s.hook = devstack.Hook{PHID: devstack.NewPHID("HWBH"), URI: s.booth.url("/")}
	if !phorge.Lock(t, s.hook.PHID) {
		t.Fatal("a new hook's lock is taken")
	}
	var err error
	if s.hook, err = s.CreateHook(t.Context(), s.hook); err != nil {
		t.Fatal(err)
	}
	awaitWorkflow(t, s.Site, s.hook.PHID)
	s.queue(t)
	free := lockRow(t, s)
	phorge.Unlock(t, s.hook.PHID)
	awaitBlocked(t, s)
	temporal.Freeze()
	free()
	scenario.Until(t, patience, "the row is claimed", func() bool { return row(t, s.Site, s.row.PHID).Modified > s.row.Modified })
	return s
}

func changed(settings map[string]string, name, value string) map[string]string {
	all := map[string]string{name: value}
	for n, v := range settings {
		if n != name {
			all[n] = v
		}
	}
	return all
}

func duringPOST(t *testing.T, g ground) *story {
	s := newStory(t, g)
	s.queue(t)
	s.booth.awaitCall(t)
	return s
}

// fastEnough is well below what counts as fast (500 ms).
const fastEnough = 0.3

// duringFastPOST is a call that is made inside the workflow task, because the
// receiver has been fast.
func duringFastPOST(t *testing.T, g ground) *story {
	s := newStory(t, g)
	s.booth.setWarm(true)
	scenario.Until(t, patience, "the receiver is known as fast", func() bool {
		warm := queue(t, s.Site, s.hook, s.object, never)
		await(t, s.Site, warm.PHID, "sent", "okay")
		lines := s.serve.Log.Await(t, patience, 1, "attempt", warm.PHID)
		took, ok := lines[0]["took"].(float64)
		return ok && took < fastEnough
	})
	s.booth.setWarm(false)
	s.young = true
	s.queue(t)
	s.booth.awaitCall(t)
	return s
}

// beforeWrite has the answer while a transaction of somebody's keeps the row.
func beforeWrite(t *testing.T, g ground) *story {
	s := duringPOST(t, g)
	s.goOn = lockRow(t, s)
	s.booth.letGo()
	awaitBlocked(t, s)
	return s
}

// duringWriteBack: the first write has been given up.
func duringWriteBack(t *testing.T, g ground) *story {
	s := beforeWrite(t, g)
	if lines := s.serve.Log.Await(t, patience, 1, "attempt", s.row.PHID); lines[0].Text("state") != "unwritten" {
		t.Fatalf("the first write is not given up: %v", lines[0])
	}
	return s
}

func duringRest(t *testing.T, g ground) *story {
	s := duringPOST(t, g)
	s.booth.letGo()
	await(t, s.Site, s.row.PHID, "queued", "fail")
	scenario.Until(t, patience, "the request rests", func() bool { return s.rests(t) })
	s.resting, s.goOn = true, func() {}
	return s
}

// databaseAway is a rest during which both databases are cut off.
func databaseAway(t *testing.T, g ground) *story {
	mariadb := scenario.NewCable(t, g.MariaDB.Addr())
	settings := changed(g.settings, "WAYBILL_HERALD_DSN", "root@tcp("+mariadb.Addr()+")/"+g.Database("herald"))
	settings["WAYBILL_DSN"] = "root@tcp(" + mariadb.Addr() + ")/" + g.Ledger
	g.serve = g.Serve(t, settings)
	s := duringRest(t, g)
	mariadb.Gone()
	s.deaf, s.goOn = true, mariadb.Accept
	return s
}

// lockRow keeps the story's row from being written by others, until the returned
// function is called.
func lockRow(t *testing.T, s *story) (free func()) {
	t.Helper()
	tx, err := s.DB.BeginTx(context.Background(), nil) // ended by the cleanup, not with the test's context
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	query := "SELECT id FROM " + s.requests() + " WHERE phid = ? FOR UPDATE"
	if err := tx.QueryRowContext(t.Context(), query, s.row.PHID).Scan(new(int64)); err != nil {
		t.Fatal(err)
	}
	s.db = tx
	return func() {
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
	}
}

// awaitBlocked waits until a write of the story's site is on its way: it has
// been sent to the server and, as the row is locked, cannot end.
func awaitBlocked(t *testing.T, s *story) {
	t.Helper()
	scenario.Until(t, patience, "a write waits for the row", func() bool {
		var n int
		err := s.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist"+
			" WHERE db = ? AND info LIKE '%UPDATE herald_webhookrequest%'", s.Database("herald")).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
}

// history are the events of a workflow's newest run.
func (s *story) history(t *testing.T, id string) (events []*historypb.HistoryEvent) {
	t.Helper()
	all := s.Temporal.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for all.HasNext() {
		e, err := all.Next()
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// rests says that the story's newest run waits for a timer.
func (s *story) rests(t *testing.T) bool {
	t.Helper()
	for _, e := range s.history(t, s.request()) {
		if e.GetEventType() == enumspb.EVENT_TYPE_TIMER_STARTED {
			return true
		}
	}
	return false
}
