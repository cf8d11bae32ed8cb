package acceptance

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// tell sends a hook's workflow a signal as an operator does: with Temporal's
// own command line. input is JSON; none is sent for "".
func tell(t *testing.T, s *scenario.Site, hookPHID, name, input string) {
	t.Helper()
	bin, err := devstack.FindTemporal(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"workflow", "signal", "--address", s.TemporalAddress, "--namespace", s.TemporalNamespace,
		"--workflow-id", "hook/" + hookPHID, "--name", name,
	}
	if input != "" {
		args = append(args, "--input", input)
	}
	for deadline := time.Now().Add(patience); ; {
		said, err := exec.CommandContext(t.Context(), bin, args...).CombinedOutput()
		if err == nil {
			return
		}
		// The server's word for a workflow that is being worked on at that moment;
		// nothing was accepted, and an operator repeats the command.
		if !strings.Contains(string(said), "Workflow is busy") || time.Now().After(deadline) {
			t.Fatalf("temporal %s: %v\n%s", strings.Join(args, " "), err, said)
		}
	}
}

// pausedWithin is what an operator is promised, from the signal's acceptance
// until no attempt begins any more.
const pausedWithin = time.Second

// awaitPause waits until `waybill hooks list` shows a pause.
func awaitPause(t *testing.T, s *scenario.Site, hookPHID string) string {
	t.Helper()
	var line string
	scenario.Until(t, patience, "the hook is shown as paused", func() bool {
		line = listed(t, s, hookPHID)
		return strings.Contains(line, "paused by")
	})
	return line
}

// listed is a hook's line in `waybill hooks list`.
func listed(t *testing.T, s *scenario.Site, hookPHID string) string {
	t.Helper()
	stdout, stderr, code := s.Command(t, nil, "hooks", "list")
	if code != 0 {
		t.Fatalf("waybill hooks list ended with %d: %s", code, stderr)
	}
	for line := range strings.Lines(stdout) {
		if strings.HasPrefix(line, hookPHID) {
			return line
		}
	}
	t.Fatalf("waybill hooks list does not show %s:\n%s", hookPHID, stdout)
	return ""
}

// awaitWorkflow waits for the hook's workflow, which exists before the hook is
// fed and also without a row.
func awaitWorkflow(t *testing.T, s *scenario.Site, hookPHID string) {
	t.Helper()
	scenario.Until(t, patience, "the hook has a workflow", func() bool { return s.Open(t, "hook/"+hookPHID) })
}

// A pause signal stops a hook within a second, whatever its argument; what was
// said is shown to others; resume goes on, and nothing is lost.
func TestAPauseSignalStopsAHook(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	for name, c := range map[string]struct{ input, shown string }{
		"a plain string": {`"the receiver moves house"`, "the receiver moves house"},
		"an object":      {`{"by":"ada","reason":"maintenance"}`, "paused by ada: maintenance"},
		"no argument":    {"", "paused by"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := l.hook(t, "status200", strings.ReplaceAll(name, " ", "-"))
			awaitWorkflow(t, l.Site, h.PHID)
			pausedAndResumed(t, l, h, func() { tell(t, l.Site, h.PHID, "pause", c.input) }, c.shown,
				func() { tell(t, l.Site, h.PHID, "resume", "") })
		})
	}
	t.Run("the command", func(t *testing.T) {
		t.Parallel()
		h := l.hook(t, "status200", "command")
		awaitWorkflow(t, l.Site, h.PHID)
		pausedAndResumed(t, l, h,
			func() { hooksCommand(t, l.Site, "pause", h.PHID, "--by", "grace", "--reason", "a test") }, "paused by grace: a test",
			func() { hooksCommand(t, l.Site, "resume", h.PHID) })
	})
}

func hooksCommand(t *testing.T, s *scenario.Site, args ...string) {
	t.Helper()
	if stdout, stderr, code := s.Command(t, nil, append([]string{"hooks"}, args...)...); code != 0 {
		t.Fatalf("waybill hooks %v ended with %d: %s%s", args, code, stdout, stderr)
	}
}

// pausedAndResumed keeps a row arriving all the time, so that the moment at
// which a pause takes hold is seen at the receiver.
func pausedAndResumed(t *testing.T, l lane, h devstack.Hook, pause func(), shown string, resume func()) {
	t.Helper()
	name := strings.TrimPrefix(h.URI, l.receiver.URL("status200", ""))
	rows := []devstack.Row{queue(t, l.Site, h, l.object, never)}
	await(t, l.Site, rows[0].PHID, "sent", "okay")
	pause()
	asked := time.Now()
	scenario.Within(t, pausedWithin, func() bool { // keep the queue filled while the pause takes hold
		rows = append(rows, queue(t, l.Site, h, l.object, never))
		return false
	})
	late := queue(t, l.Site, h, l.object, never)
	rows = append(rows, late)
	scenario.Never(t, 2*time.Second, "an attempt of a paused hook", func() bool {
		got := l.receiver.Case(name)
		return got[len(got)-1].At.Sub(asked) > pausedWithin
	})
	if got := row(t, l.Site, late.PHID); got != late {
		t.Errorf("a row of a paused hook changed: %+v", got)
	}
	if line := awaitPause(t, l.Site, h.PHID); !strings.Contains(line, shown) {
		t.Errorf("shown: %s, want %q in it", line, shown)
	}
	resume()
	for _, r := range rows {
		await(t, l.Site, r.PHID, "sent", "okay")
	}
	if n := len(l.receiver.Case(name)); n != len(rows) {
		t.Errorf("%d requests for %d rows", n, len(rows))
	}
	if line := listed(t, l.Site, h.PHID); strings.Contains(line, "paused") {
		t.Errorf("after resume: %s", line)
	}
}

// A pause outlives the process.
func TestAPauseSurvivesARestart(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	h, other := l.hook(t, "status200", "kept"), l.hook(t, "status200", "other")
	awaitWorkflow(t, l.Site, h.PHID)
	tell(t, l.Site, h.PHID, "pause", `"for good"`)
	awaitPause(t, l.Site, h.PHID)
	l.serve.Stop(t)
	r := queue(t, l.Site, h, l.object, forever)
	l.Serve(t, nil)
	await(t, l.Site, queue(t, l.Site, other, l.object, never).PHID, "sent", "okay")
	scenario.Never(t, 2*time.Second, "a paused hook is called after a restart", func() bool { return len(l.receiver.Case("kept")) > 0 })
	if got := row(t, l.Site, r.PHID); got != r {
		t.Errorf("the row changed: %+v", got)
	}
	tell(t, l.Site, h.PHID, "resume", "")
	await(t, l.Site, r.PHID, "sent", "okay")
}

// --all holds every hook, also one that is created later; hooks that were
// paused by name stay so when it is over.
func TestAllHooksCanBePausedAtOnce(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	first, named := l.hook(t, "status200", "first"), l.hook(t, "status200", "named")
	awaitWorkflow(t, l.Site, named.PHID)
	await(t, l.Site, queue(t, l.Site, first, l.object, never).PHID, "sent", "okay")
	hooksCommand(t, l.Site, "pause", named.PHID, "--reason", "by name")
	awaitPause(t, l.Site, named.PHID)
	hooksCommand(t, l.Site, "pause", "--all", "--by", "ada", "--reason", "storage upgrade")
	held := []devstack.Row{queue(t, l.Site, first, l.object, never), queue(t, l.Site, l.hook(t, "status200", "later"), l.object, never)}
	before := len(l.receiver.Requests())
	scenario.Never(t, 3*time.Second, "a call although all hooks are paused", func() bool { return len(l.receiver.Requests()) > before })
	hooksCommand(t, l.Site, "resume", "--all")
	for _, r := range held {
		await(t, l.Site, r.PHID, "sent", "okay")
	}
	r := queue(t, l.Site, named, l.object, never)
	scenario.Never(t, 2*time.Second, "a hook paused by name is called", func() bool { return len(l.receiver.Case("named")) > 0 })
	hooksCommand(t, l.Site, "resume", named.PHID)
	await(t, l.Site, r.PHID, "sent", "okay")
}

// A pause by command that no worker has seen yet holds from a start's first
// moment: its word is in the table that admission reads.
func TestAPauseGivenWhileNothingRunsHoldsAtTheStart(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	h, other := l.hook(t, "status200", "quiet"), l.hook(t, "status200", "loud")
	awaitWorkflow(t, l.Site, h.PHID)
	l.serve.Stop(t)
	hooksCommand(t, l.Site, "pause", h.PHID, "--by", "grace", "--reason", "before the start")
	held := queue(t, l.Site, h, l.object, never)
	l.Serve(t, nil)
	await(t, l.Site, queue(t, l.Site, other, l.object, never).PHID, "sent", "okay")
	scenario.Never(t, 2*time.Second, "a hook paused before the start is called", func() bool { return len(l.receiver.Case("quiet")) > 0 })
	hooksCommand(t, l.Site, "resume", h.PHID)
	await(t, l.Site, held.PHID, "sent", "okay")
}
