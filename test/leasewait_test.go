package acceptance

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/test/scenario"
)

// A hook whose owner has crashed waits until that one's calls are over. The
// commands say so, for the hook and for its rows, and until when; then no more.
func TestTheWaitForACrashedOwnerIsShown(t *testing.T) {
	t.Parallel()
	const lease = 20 * time.Second
	settings := map[string]string{
		"WAYBILL_HERALD_DELIVERY_TIMEOUT": "10s", "WAYBILL_HERALD_WRITE_ALLOWANCE": "5s", "WAYBILL_HERALD_CLAIM_LEASE": lease.String(),
	}
	l := newLane(t, settings)
	h := l.hook(t, "status200", "crashed")
	awaitWorkflow(t, l.Site, h.PHID)
	await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "sent", "okay")
	if one := decoded[shownHook](t, l, settings, "hooks", "show", h.PHID); one.State != "delivering" || one.Waits != nil {
		t.Errorf("before the crash %+v", one)
	}
	l.serve.Signal(syscall.SIGKILL)
	killed := time.Now()
	heir := l.Serve(t, settings)
	waiting := queue(t, l.Site, h, l.object, never)
	var one shownHook
	scenario.Until(t, patience, "the hook waits", func() bool {
		one = decoded[shownHook](t, l, settings, "hooks", "show", h.PHID)
		return one.State == "waiting"
	})
	if one.Waits == nil || one.Waits.Before(killed.Add(lease-2*time.Second)) || one.Waits.After(time.Now().Add(lease+2*time.Second)) || one.Owner == nil {
		t.Errorf("killed at %v, lease %v: %+v", killed, lease, one)
	}
	listed := asked(t, l, settings, "hooks", "list")
	shown := asked(t, l, settings, "requests", "show", waiting.PHID)
	if !strings.Contains(listed, " for calls of an owner that crashed") || !strings.Contains(shown, "as its whole hook does") {
		t.Errorf("the hooks:\n%s\nthe request:\n%s", listed, shown)
	}
	t.Logf("\n%s\n%s", listed, shown)
	await(t, l.Site, waiting.PHID, "sent", "okay")
	scenario.Until(t, patience, "the hook waits no more", func() bool {
		one = decoded[shownHook](t, l, settings, "hooks", "show", h.PHID)
		return one.State == "delivering" && one.Waits == nil
	})
	if code := heir.Stop(t); code != 0 {
		t.Errorf("the stop ended with %d", code)
	}
}
