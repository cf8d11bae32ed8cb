package acceptance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// deliveredByPhorge waits until a row was delivered by Phorge's worker, which Waybill
// leaves the hook to.
func deliveredByPhorge(t *testing.T, l lane, phorge *scenario.PhorgeWorker, r devstack.Row) {
	t.Helper()
	scenario.Until(t, patience, "Phorge's worker gets the hook's lock", func() bool { return phorge.Turn(t, r.PHID) == scenario.Called })
	await(t, l.Site, r.PHID, "sent", "okay")
}

// A released hook is Phorge's: attempts under way end and are written, the lock
// is kept 5 s after the last write and then left alone by every process, also
// by one that starts later; resume takes the hook back. Nothing is sent twice.
func TestAReleasedHookIsDeliveredByPhorgeUntilResumed(t *testing.T) {
	t.Parallel()
	l := newLane(t, map[string]string{"WAYBILL_HERALD_DELIVERY_TIMEOUT": "15s"})
	second := l.Serve(t, nil)
	gate, phorge := scenario.NewGate(t), scenario.NewPhorgeWorker(t, l.Phorge)
	slow, other := hook(t, l.Site, gate.URL()), l.hook(t, "status200", "not-released")
	underway := queue(t, l.Site, slow, l.object, never)
	gate.AwaitCall(t)
	waiting := queue(t, l.Site, slow, l.object, never)
	hooksCommand(t, l.Site, "release", slow.PHID, "--by", "ada", "--reason", "trial over")
	if line := listed(t, l.Site, slow.PHID); !strings.Contains(line, "released to Phorge by ada: trial over") {
		t.Errorf("shown: %s", line)
	}
	if turn := phorge.Turn(t, waiting.PHID); turn != scenario.Yielded {
		t.Errorf("Phorge while an attempt is under way: %s", turn)
	}
	answered := time.Now() // the last write comes after it
	gate.Answer(t, 200)
	await(t, l.Site, underway.PHID, "sent", "okay")
	gate.Open(200)
	deliveredByPhorge(t, l, phorge, waiting)
	if held := time.Since(answered); held < holdAfter {
		t.Errorf("the lock was free %v after the last answer, want %v at least", held, holdAfter)
	}

	second.Stop(t)
	l.Serve(t, nil)
	scenario.Never(t, 3*time.Second, "somebody takes the lock of a released hook", func() bool { return phorge.Held(t, slow.PHID) })
	await(t, l.Site, queue(t, l.Site, other, l.object, never).PHID, "sent", "okay")
	deliveredByPhorge(t, l, phorge, queue(t, l.Site, slow, l.object, never))
	if line := listed(t, l.Site, slow.PHID); !strings.Contains(line, "nobody") {
		t.Errorf("the released hook has an owner: %s", line)
	}

	hooksCommand(t, l.Site, "resume", slow.PHID)
	scenario.Until(t, patience, "Waybill has the lock again", func() bool { return phorge.Held(t, slow.PHID) })
	again := queue(t, l.Site, slow, l.object, never)
	await(t, l.Site, again.PHID, "sent", "okay")
	if turn := phorge.Turn(t, again.PHID); turn != scenario.Archived {
		t.Errorf("Phorge after the resume: %s", turn)
	}
	scenario.Never(t, 2*time.Second, "a call too many", func() bool { return gate.Calls() > 4 })
	if n, most := gate.Calls(), gate.Most(); n != 4 || most != 1 {
		t.Errorf("%d calls for four rows, %d at once", n, most)
	}
}

// Released, paused (nobody delivers, the lock is held), released again: each
// replaces the one before, by command and by signal.
func TestAPauseAndAReleaseReplaceEachOther(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	phorge := scenario.NewPhorgeWorker(t, l.Phorge)
	h := l.hook(t, "status200", "replaced")
	awaitWorkflow(t, l.Site, h.PHID)
	held := func(want bool) {
		t.Helper()
		scenario.Until(t, patience, fmt.Sprint("the lock is held: ", want), func() bool { return phorge.Held(t, h.PHID) == want })
	}
	shown := func(text string) {
		t.Helper()
		scenario.Until(t, patience, text+" is shown", func() bool { return strings.Contains(listed(t, l.Site, h.PHID), text) })
	}
	held(true)
	tell(t, l.Site, h.PHID, "release", `{"by":"ada","reason":"by signal"}`)
	shown("released to Phorge by ada: by signal")
	held(false)
	r := queue(t, l.Site, h, l.object, never)
	hooksCommand(t, l.Site, "pause", h.PHID, "--by", "bob", "--reason", "by command")
	shown("paused by bob: by command")
	held(true)
	scenario.Never(t, 2*time.Second, "somebody delivers for a paused hook", func() bool {
		return phorge.Turn(t, r.PHID) != scenario.Yielded || len(l.receiver.Case("replaced")) > 0
	})
	tell(t, l.Site, h.PHID, "release", "")
	held(false)
	deliveredByPhorge(t, l, phorge, r)
	tell(t, l.Site, h.PHID, "resume", "")
	held(true)
	await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "sent", "okay")
	if p, w := byPhorge(l.receiver, "replaced"), byWaybill(l.receiver, "replaced"); p != 1 || w != 1 {
		t.Errorf("%d requests by Phorge, %d by Waybill, want one each", p, w)
	}
}

// --all gives every hook back, also one created later, but not one that is
// paused by name; resume --all takes them back in every process.
func TestAllHooksCanBeReleasedAtOnce(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	l.Serve(t, nil)
	phorge := scenario.NewPhorgeWorker(t, l.Phorge)
	first, named := l.hook(t, "status200", "all-first"), l.hook(t, "status200", "all-named")
	for _, h := range []devstack.Hook{first, named} {
		awaitWorkflow(t, l.Site, h.PHID)
		scenario.Until(t, patience, "Waybill has the lock", func() bool { return phorge.Held(t, h.PHID) })
	}
	hooksCommand(t, l.Site, "pause", named.PHID)
	hooksCommand(t, l.Site, "release", "--all", "--by", "ada", "--reason", "back to Phorge")
	later := l.hook(t, "status200", "all-later")
	scenario.Until(t, patience, "the lock is free", func() bool { return !phorge.Held(t, first.PHID) })
	for _, h := range []devstack.Hook{first, later} {
		deliveredByPhorge(t, l, phorge, queue(t, l.Site, h, l.object, never))
	}
	paused := queue(t, l.Site, named, l.object, never)
	scenario.Never(t, 2*time.Second, "a released hook is taken, or a paused one let go", func() bool {
		return phorge.Held(t, first.PHID) || phorge.Held(t, later.PHID) || !phorge.Held(t, named.PHID)
	})
	hooksCommand(t, l.Site, "resume", "--all")
	for _, h := range []devstack.Hook{first, later} {
		scenario.Until(t, patience, "Waybill has the lock again", func() bool { return phorge.Held(t, h.PHID) })
		await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "sent", "okay")
	}
	for _, name := range []string{"all-first", "all-later"} {
		if p, w := byPhorge(l.receiver, name), byWaybill(l.receiver, name); p != 1 || w != 1 {
			t.Errorf("%s: %d requests by Phorge, %d by Waybill, want one each", name, p, w)
		}
	}
	if got := row(t, l.Site, paused.PHID); got != paused || len(l.receiver.Case("all-named")) > 0 {
		t.Errorf("a hook paused by name was delivered: %+v", got)
	}
}

// A pause of all hooks holds in every process within a second, and its resume
// lets all of them go on.
func TestAPauseOfAllHooksHoldsInEveryProcess(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	l.Serve(t, nil)
	h := l.hook(t, "status200", "all-processes")
	awaitWorkflow(t, l.Site, h.PHID)
	pausedAndResumed(t, l, h,
		func() { hooksCommand(t, l.Site, "pause", "--all", "--by", "grace", "--reason", "upgrade") }, "paused by grace: upgrade",
		func() { hooksCommand(t, l.Site, "resume", "--all") })
}
