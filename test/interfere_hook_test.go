package acceptance

import (
	"testing"
	"time"

	"waybill/test/scenario"
)

// soonAgain is how soon the only hook's workflow is made sure of: by the look
// that is made every 5 s on behalf of all hooks, and which falls on it.
const soonAgain = 15 * time.Second

// A hook's workflow may be taken away at any moment of an attempt: deliveries do
// not need it, a pause that was written holds, and it comes back by itself.
func TestAHooksWorkflowComesBackByItself(t *testing.T) {
	t.Parallel()
	for what, say := range map[string]func(*testing.T, *story){
		"cancelled":  func(t *testing.T, s *story) { s.command(t, "cancel", "--workflow-id", s.control()) },
		"terminated": func(t *testing.T, s *story) { s.command(t, "terminate", "--workflow-id", s.control()) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := duringPOST(t, ground{lane: newLane(t, patient(backoff.String()))})
			before := s.newest(t, s.control())
			say(t, s)
			scenario.Until(t, soonAgain+patience, "the hook has a new run", func() bool {
				return s.Open(t, s.control()) && s.newest(t, s.control()) != before
			})
			pauseHook(t, s)
			before = s.newest(t, s.control())
			say(t, s)
			scenario.Until(t, patience, "the run ends", func() bool { return s.newest(t, s.control()) != before || !s.Open(t, s.control()) })
			s.goOn()
			scenario.Never(t, backoff+time.Second, "a retry of a paused hook", func() bool { return len(s.booth.calls()) > 1 })
			scenario.Until(t, soonAgain+patience, "the hook has a new run", func() bool { return s.Open(t, s.control()) })
			s.signal(t, s.control(), "resume", nil)
			s.endsWell(t)
		})
	}
}

// Resetting a hook's workflow says again what was signalled to it, all at once;
// then resume is taken before pause. It ends paused at worst, never resumed
// against an operator's word.
func TestAResetHookIsPausedRatherThanCalled(t *testing.T) {
	t.Parallel()
	l := newLane(t, patient(backoff.String()))
	for what, which := range map[string]func([]int64) int64{"first task": first, "last task": last} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := duringPOST(t, ground{lane: l})
			pauseHook(t, s)
			s.goOn()
			before := s.newest(t, s.control())
			s.mustReset(t, s.control(), which)
			scenario.Never(t, backoff+time.Second, "a retry of a paused hook", func() bool { return len(s.booth.calls()) > 1 })
			if s.newest(t, s.control()) == before || !s.Open(t, s.control()) {
				t.Error("there is no new run")
			}
			awaitPause(t, s.Site, s.hook.PHID)
			s.signal(t, s.control(), "resume", nil)
			s.endsWell(t)
			s.mustReset(t, s.control(), first) // says pause and resume again
			awaitPause(t, s.Site, s.hook.PHID)
			s.signal(t, s.control(), "resume", nil)
			s.endsWell(t)
		})
	}
}

// control is the id of the workflow of the story's hook.
func (s *story) control() string { return "hook/" + s.hook.PHID }

// newest is the run id of a workflow's newest run.
func (s *story) newest(t *testing.T, id string) string {
	t.Helper()
	run, _ := s.tasks(t, id)
	return run
}
