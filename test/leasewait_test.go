package acceptance

import (
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// A hook whose owner was killed during a POST waits until that one's calls are
// over. The commands say so, for the hook, for the row whose outcome is not
// known and for one behind it, and until when; then no more.
func TestTheWaitForACrashedOwnerIsShown(t *testing.T) {
	t.Parallel()
	const lease = 20 * time.Second
	settings := map[string]string{
		"WAYBILL_HERALD_DELIVERY_TIMEOUT": "10s", "WAYBILL_HERALD_WRITE_ALLOWANCE": "5s", "WAYBILL_HERALD_CLAIM_LEASE": lease.String(),
	}
	l := newLane(t, settings)
	gate := scenario.NewGate(t)
	h := hook(t, l.Site, gate.URL())
	unknown := queue(t, l.Site, h, l.object, never)
	gate.AwaitCall(t)
	if one := decoded[shownHook](t, l, settings, "hooks", "show", h.PHID); one.State != "delivering" || one.Waits != nil {
		t.Errorf("before the crash %+v", one)
	}
	l.serve.Kill()
	gate.Open(200)
	begun := time.Now()
	heir := l.Serve(t, settings)
	behind := queue(t, l.Site, h, l.object, never)
	var one shownHook
	scenario.Until(t, patience, "the hook waits", func() bool {
		one = decoded[shownHook](t, l, settings, "hooks", "show", h.PHID)
		return one.State == "waiting"
	})
	// Shown in whole seconds of another clock.
	if one.Waits == nil || one.Waits.Before(begun.Add(lease-2*time.Second)) || one.Waits.After(time.Now().Add(lease+2*time.Second)) || one.Owner == nil {
		t.Fatalf("the next owner began at %v, lease %v: %+v", begun, lease, one)
	}
	if listed := asked(t, l, settings, "hooks", "list"); !strings.Contains(listed, ": its last owner was cut off") {
		t.Errorf("the hooks:\n%s", listed)
	}
	showWait(t, l, settings, unknown, "whether it arrived is not known", *one.Waits)
	showWait(t, l, settings, behind, "as every request of the hook does", *one.Waits)
	await(t, l.Site, unknown.PHID, "sent", "okay")
	await(t, l.Site, behind.PHID, "sent", "okay")
	if n := gate.Calls(); n != 3 {
		t.Errorf("%d calls, want two for the row of the killed owner and one behind it", n)
	}
	scenario.Until(t, patience, "the hook waits no more", func() bool {
		one = decoded[shownHook](t, l, settings, "hooks", "show", h.PHID)
		return one.State == "delivering" && one.Waits == nil
	})
	if code := heir.Stop(t); code != 0 {
		t.Errorf("the stop ended with %d", code)
	}
}

// showWait looks at what a row of a waiting hook is said to wait for. Its moment
// is the hook's, rounded once more.
func showWait(t *testing.T, l lane, settings map[string]string, r devstack.Row, why string, until time.Time) {
	t.Helper()
	page := decoded[shownPage](t, l, settings, "requests", "show", r.PHID)
	if !strings.Contains(page.Outlook, why) || page.Next == nil || page.Next.Sub(until).Abs() > 2*time.Second {
		t.Errorf("row %s, hook until %v: from %v, %q", r.PHID, until, page.Next, page.Outlook)
	}
}
