package acceptance

import (
	"errors"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// word is what an operator does to a story at its moment, before it goes on.
type word struct {
	// say returns how the run that is open at the moment will end.
	say func(t *testing.T, s *story) status
	// after, where it is set, comes when the story has gone on.
	after func(t *testing.T, s *story)
}

type status = enumspb.WorkflowExecutionStatus

const (
	completed  = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	cancelled  = enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED
	terminated = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
)

// impatient is how often an operator asks for a retry.
const impatient = 100

// However often retry-now is said before it can be acted on, there is one retry,
// and at once: the backoff is so long here that only the word can have brought
// it. A run that rests acts on the first word already; there the retry succeeds,
// because each later word would rightly ask for another one.
func TestAHundredRetryNowsGiveOneRetryAtAnyMoment(t *testing.T) {
	t.Parallel()
	everyMoment(t, "10m", map[string]word{"retry-now": {
		say: func(t *testing.T, s *story) status {
			s.booth.fail(!s.resting)
			s.told = s.run(t)
			for range impatient {
				s.ask(t)
			}
			return completed
		},
		after: func(t *testing.T, s *story) {
			if s.resting {
				return
			}
			s.retried(t)
			scenario.Never(t, time.Second, "a second retry", func() bool { return len(s.booth.calls()) > 2 })
			s.booth.fail(false)
			s.ask(t)
			s.calls = 3
		},
	}})
}

// A pause lets an attempt that has begun end and nothing else begin; a cancelled
// run ends after its attempt, and the row is tried again when it is due.
func TestPauseAndCancelAtAnyMoment(t *testing.T) {
	t.Parallel()
	everyMoment(t, backoff.String(), map[string]word{
		"pause and resume": {
			say:   func(t *testing.T, s *story) status { pauseHook(t, s); return completed },
			after: nothingWhilePaused,
		},
		"cancel": {say: func(t *testing.T, s *story) status {
			if err := s.Temporal.CancelWorkflow(t.Context(), s.request(), ""); err != nil {
				t.Fatal(err)
			}
			return cancelled
		}},
	})
}

// everyMoment tells a story for each word at each moment, and checks what all
// of them have in common.
func everyMoment(t *testing.T, backoff string, words map[string]word) {
	shared := newLane(t, patient(backoff))
	for when, m := range moments() {
		for what, w := range words {
			t.Run(when+"/"+what, func(t *testing.T) {
				t.Parallel()
				s := m.reach(t, m.prepare(t, shared, backoff))
				told := s.run(t)
				end := w.say(t, s)
				s.goOn()
				if w.after != nil {
					w.after(t, s)
				}
				s.endsWell(t)
				if got := s.status(t, told); got != end {
					t.Errorf("the run that was told ended as %v, want %v", got, end)
				}
			})
		}
	}
}

// retried waits for the retry that was asked for. At a start a claim may come
// before the process has its hooks: that run ends deferred and forgets the words
// (docs/architecture.md), and the next one has to be told.
func (s *story) retried(t *testing.T) {
	t.Helper()
	forgotten := false
	scenario.Until(t, patience, "the retry comes, or a run rests that was not told", func() bool {
		calls := len(s.booth.calls())
		forgotten = calls == 1 && s.run(t) != s.told && s.rests(t)
		return calls == 2 || forgotten
	})
	if !forgotten {
		return
	}
	var result struct{ Outcome string }
	if err := s.Temporal.GetWorkflow(t.Context(), s.request(), s.told).Get(t.Context(), &result); err != nil || result.Outcome != "deferred" {
		t.Errorf("the run that was told ended %q without a retry, %v", result.Outcome, err)
	}
	s.ask(t)
	scenario.Until(t, patience, "the retry comes", func() bool { return len(s.booth.calls()) == 2 })
}

// endsWell wants what is right for every story: two calls (or as many as it was
// told), one after the other, the row sent, no run left open, and the hook free
// for its next row.
func (s *story) endsWell(t *testing.T) {
	t.Helper()
	// A claim in the way takes a lease to pass, and a feed's look comes after it.
	scenario.Until(t, 2*patience, "the row is sent", func() bool { return row(t, s.Site, s.row.PHID).Status == "sent" })
	await(t, s.Site, s.row.PHID, "sent", "okay")
	scenario.Until(t, patience, "no run of the request is open", func() bool { return !s.Open(t, s.request()) })
	next := queue(t, s.Site, s.hook, task(t, s.Site), never)
	await(t, s.Site, next.PHID, "sent", "okay")
	if n, want := s.booth.about(s.object), max(s.calls, 2); n != want {
		t.Errorf("%d calls for the row, want %d", n, want)
	}
	if n := s.booth.about(next.ObjectPHID); n != 1 {
		t.Errorf("%d calls for the row behind it", n)
	}
	if n := s.booth.atOnce(); n != 1 {
		t.Errorf("%d calls at once", n)
	}
	for _, line := range s.serve.Log.Await(t, patience, s.booth.about(s.object), "attempt", s.row.PHID) {
		if line.Text("state") == "overtaken" || line.Text("state") == "unknown" {
			t.Errorf("attempt %v", line)
		}
	}
}

// run is the id of the request's newest run.
func (s *story) run(t *testing.T) string {
	t.Helper()
	d, err := s.Temporal.DescribeWorkflow(t.Context(), s.request(), "")
	if err != nil {
		t.Fatal(err)
	}
	return d.WorkflowExecution.RunID
}

func (s *story) status(t *testing.T, run string) status {
	t.Helper()
	d, err := s.Temporal.DescribeWorkflow(t.Context(), s.request(), run)
	if err != nil {
		t.Fatal(err)
	}
	return d.Status
}

func (s *story) signal(t *testing.T, id, name string, arg any) {
	t.Helper()
	if err := s.Temporal.SignalWorkflow(t.Context(), id, "", name, arg); err != nil {
		t.Fatal(err)
	}
}

// ask says retry-now. An earlier word may have ended the run already.
func (s *story) ask(t *testing.T) {
	t.Helper()
	var closed *serviceerror.NotFound
	err := s.Temporal.SignalWorkflow(t.Context(), s.request(), "", "retry-now", nil)
	if err != nil && !errors.As(err, &closed) {
		t.Fatal(err)
	}
}

// pauseHook waits until the pause holds, where anybody can hear it.
func pauseHook(t *testing.T, s *story) {
	s.signal(t, "hook/"+s.hook.PHID, "pause", "to be looked at")
	if !s.deaf {
		awaitPause(t, s.Site, s.hook.PHID)
	}
}

// nothingWhilePaused gives a retry time to come, and resumes. A pause that no
// process could hear may come after the first attempt.
func nothingWhilePaused(t *testing.T, s *story) {
	awaitPause(t, s.Site, s.hook.PHID)
	scenario.Never(t, backoff+time.Second, "a retry of a paused hook", func() bool { return len(s.booth.calls()) > 1 })
	s.signal(t, "hook/"+s.hook.PHID, "resume", nil)
}

// What holds a hook or a row back for a reason holds an impatient operator, too.
func TestRetryNowSkipsNothingButTheBackoff(t *testing.T) {
	t.Parallel()
	l := newLane(t, patient(backoff.String()))
	for what, hold := range map[string]struct {
		on  func(*testing.T, *story)
		off func(*testing.T, *story)
		// text is what the request's run says about it, in its result or details.
		text string
	}{
		"a pause":      {pauseHook, func(t *testing.T, s *story) { s.signal(t, "hook/"+s.hook.PHID, "resume", nil) }, "Paused"},
		"a breaker":    {openBreaker, nil, "Too many"},
		"a live claim": {claimRow, func(*testing.T, *story) {}, "earlier claim"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := duringRest(t, ground{lane: l})
			hold.on(t, s)
			held := time.Now()
			for range impatient {
				s.ask(t)
			}
			scenario.Until(t, patience, "the request says what holds it: "+hold.text, func() bool { return s.says(t, hold.text) })
			scenario.Never(t, backoff+time.Second, "a call of what is held", func() bool { return len(s.booth.calls()) > 1 })
			if hold.off == nil { // its window would have to pass
				return
			}
			hold.off(t, s)
			s.endsWell(t)
			// Whole seconds of the database's clock; a live claim has no other end.
			if what == "a live claim" && time.Since(held) < leaseOfPatient-time.Second {
				t.Errorf("sent %v after a claim of somebody's, the lease is %v", time.Since(held), leaseOfPatient)
			}
		})
	}
}

// leaseOfPatient: 5 s to start, 12 s for the exchange, 2 s for the write.
const leaseOfPatient = 19 * time.Second

// says looks for a text in what the request's histories and pages say.
func (s *story) says(t *testing.T, text string) bool {
	t.Helper()
	for _, e := range s.history(t, s.request()) {
		if strings.Contains(e.String(), text) {
			return true
		}
	}
	return false
}

// openBreaker gives the hook ten failed rows, as Phorge counts them.
func openBreaker(t *testing.T, s *story) {
	for range 10 {
		r := insert(t, s.Site, devstack.Row{HookPHID: s.hook.PHID, ObjectPHID: s.object, Status: "failed", LastResult: "fail", Properties: never})
		execSQL(t, s.Site, "UPDATE "+s.requests()+" SET lastRequestEpoch = UNIX_TIMESTAMP() WHERE phid = ?", r.PHID)
	}
}

// claimRow is a claim of somebody who is not heard of again.
func claimRow(t *testing.T, s *story) {
	execSQL(t, s.Site, "UPDATE "+s.requests()+" SET dateModified = UNIX_TIMESTAMP() + 3 WHERE phid = ?", s.row.PHID)
}

// requests is the table of the story's row.
func (s *story) requests() string { return s.Database("herald") + ".herald_webhookrequest" }
