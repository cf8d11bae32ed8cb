package acceptance

import (
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack/stacktest"
	"waybill/test/scenario"
)

// An operator's pause by command holds whether or not Temporal is there or
// knows the hook: the table is what admission reads.
func TestAPauseByCommandNeedsNoTemporal(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	h := l.hook(t, "status200", "by-command")
	await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "sent", "okay")
	for name, story := range map[string]func() map[string]string{
		"its workflow is gone": func() map[string]string {
			if err := l.Temporal.TerminateWorkflow(t.Context(), "hook/"+h.PHID, "", "by hand"); err != nil {
				t.Fatal(err)
			}
			return nil
		},
		"Temporal is away": func() map[string]string {
			return map[string]string{"WAYBILL_TEMPORAL_ADDRESS": "127.0.0.1:1"}
		},
	} {
		changes := story()
		stdout, stderr, code := l.Command(t, changes, "hooks", "pause", h.PHID, "--reason", "by command")
		if code != 0 || !strings.Contains(stdout, "paused by") || (changes != nil) != strings.Contains(stderr, "That holds.") {
			t.Errorf("%s: code %d, %q, %q", name, code, stdout, stderr)
		}
		r := queue(t, l.Site, h, l.object, never)
		scenario.Never(t, 2*time.Second, name+": a paused hook is called", func() bool { return row(t, l.Site, r.PHID) != r })
		if _, stderr, code := l.Command(t, changes, "hooks", "resume", h.PHID); code != 0 {
			t.Errorf("%s: the resume ended with %d: %s", name, code, stderr)
		}
		await(t, l.Site, r.PHID, "sent", "okay")
	}
}

// Whatever the hook's workflow still has to hear of a resume when no worker is
// there, a pause by command that came after it stands, untouched.
func TestALateResumeEndsNoNewerPause(t *testing.T) {
	t.Parallel()
	away := map[string]string{"WAYBILL_TEMPORAL_ADDRESS": "127.0.0.1:1"}
	for name, story := range map[string]struct {
		resume func(l lane, hookPHID string)
		pause  map[string]string
	}{
		"by command, then Temporal is away": {func(l lane, hookPHID string) { hooksCommand(t, l.Site, "resume", hookPHID) }, away},
		"by signal":                         {func(l lane, hookPHID string) { tell(t, l.Site, hookPHID, "resume", "") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLane(t, nil)
			h, other := l.hook(t, "status200", "held"), l.hook(t, "status200", "other")
			awaitWorkflow(t, l.Site, h.PHID)
			hooksCommand(t, l.Site, "pause", h.PHID, "--reason", "first")
			l.serve.Stop(t)
			story.resume(l, h.PHID)
			if _, stderr, code := l.Command(t, story.pause, "hooks", "pause", h.PHID, "--reason", "second"); code != 0 {
				t.Fatalf("the pause ended with %d: %s", code, stderr)
			}
			before := pausedAt(t, l, h.PHID)
			held := queue(t, l.Site, h, l.object, never)
			l.Serve(t, nil)
			await(t, l.Site, queue(t, l.Site, other, l.object, never).PHID, "sent", "okay")
			scenario.Never(t, 2*time.Second, "a paused hook is called, or its pause changed", func() bool {
				return row(t, l.Site, held.PHID) != held || pausedAt(t, l, h.PHID) != before
			})
		})
	}
}

// pausedAt is when a hook's own pause was given, empty without one.
func pausedAt(t *testing.T, l lane, hookPHID string) (at string) {
	t.Helper()
	err := stacktest.Open(t, l.MariaDB, l.Ledger).QueryRowContext(t.Context(),
		"SELECT COALESCE(MAX(paused_at), '') FROM hook_pause WHERE hook_phid = ?", hookPHID).Scan(&at)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// A hook that nobody knows is refused, and nothing is written for it.
func TestAPauseOfAnUnknownHookIsRefused(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	_, stderr, code := l.Command(t, nil, "hooks", "pause", "PHID-HWBH-unknownunknownunknow")
	if code != 1 || !strings.Contains(stderr, "no such hook") {
		t.Errorf("code %d, %q", code, stderr)
	}
	db := stacktest.Open(t, l.MariaDB, l.Ledger)
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM hook_pause").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d pauses, %v", n, err)
	}
}
