package activities_test

import (
	"testing"
	"time"

	"waybill/activities"
	"waybill/internal/herald"
)

// A foreign claim has run out when the database's clock says so and this
// process has itself seen it for a lease: a jump of either clock delays.
func TestALeaseIsJudgedByBothClocks(t *testing.T) {
	const almost = 29 * time.Second
	for _, tt := range []struct {
		name  string
		story func(w *world)
		want  activities.ClaimState
	}{
		{"just seen", func(*world) {}, activities.Leased},
		{"both say almost", func(w *world) { w.pass(almost) }, activities.Leased},
		{"both say over", func(w *world) { w.pass(31 * time.Second) }, activities.Won},
		{"the database jumps ahead", func(w *world) { w.jump(40 * time.Second) }, activities.Leased},
		{"the database jumps ahead, then a lease goes by", func(w *world) {
			w.jump(40 * time.Second)
			w.pass(30 * time.Second)
		}, activities.Won},
		{"the database jumps back", func(w *world) {
			w.jump(-40 * time.Second)
			w.pass(almost)
		}, activities.Leased},
		{"the database jumps back, then a lease goes by", func(w *world) {
			w.jump(-40 * time.Second)
			w.pass(30 * time.Second)
		}, activities.Won},
		{"the database jumps back by hours", func(w *world) {
			w.jump(-5 * time.Hour)
			w.pass(30 * time.Second)
		}, activities.Won},
		{"the database stands still", func(w *world) { w.clock.advance(time.Hour) }, activities.Leased},
		{"claimed anew in between", func(w *world) {
			w.pass(almost)
			w.foreignClaim()
			w.pass(almost)
		}, activities.Leased},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.foreignClaim()
			w.claims(activities.Leased)
			tt.story(w)
			w.claims(tt.want)
		})
	}
}

// A claim made long ago is still new to a process that has just started.
func TestANewProcessSeesAnOldClaimForALease(t *testing.T) {
	w := newWorld(t)
	w.foreignClaim()
	w.pass(time.Hour)
	if res := w.claims(activities.Leased); res.Wait != rules().Lease {
		t.Errorf("wait %s", res.Wait)
	}
	w.pass(15 * time.Second)
	if res := w.claims(activities.Leased); res.Wait != 15*time.Second {
		t.Errorf("wait %s", res.Wait)
	}
	w.pass(15 * time.Second)
	w.claims(activities.Won)
}

// A new owner waits one lease from the lock, in which the claims that it finds
// run out as well: they were made before.
func TestANewOwnersWaitCountsForTheClaimsThatItFinds(t *testing.T) {
	for _, tt := range []struct {
		owned time.Duration // how long the lock is held when the row is first looked at
		state activities.ClaimState
		wait  time.Duration
	}{
		{0, activities.Leased, 30 * time.Second},
		{20 * time.Second, activities.Leased, 10 * time.Second},
		{30 * time.Second, activities.Won, 0},
	} {
		w := newWorld(t)
		w.pass(time.Second)
		w.foreignClaim()
		w.gate.since = w.clock.Now()
		w.pass(tt.owned)
		if res := w.claims(tt.state); res.Wait != tt.wait {
			t.Errorf("after %v: wait %v, want %v", tt.owned, res.Wait, tt.wait)
		}
	}
}

// What this process claimed itself, with the lock held, counts from the claim:
// also on a lock that it has held for long.
func TestAnOwnClaimIsRespectedHoweverLongTheLockIsHeld(t *testing.T) {
	w := newWorld(t)
	w.pass(time.Second)
	w.gate.since = w.clock.Now().Add(-time.Hour)
	w.to.answer = replies(activities.Reply{Aborted: true, Sent: true, Took: 1})
	w.sends(w.claims(activities.Won), activities.Unknown)
	w.pass(10 * time.Second)
	if res := w.claims(activities.Leased); res.Wait != 20*time.Second {
		t.Errorf("wait %v", res.Wait)
	}
	w.jump(time.Hour) // the database's clock alone decides nothing
	if res := w.claims(activities.Leased); res.Wait != 20*time.Second {
		t.Errorf("wait %v after a jump", res.Wait)
	}
	w.pass(20 * time.Second)
	w.claims(activities.Won)
}

func TestAClaimAskedForAgainIsTheSame(t *testing.T) {
	w := newWorld(t)
	first := w.claims(activities.Won)
	if again := w.claims(activities.Won); again != first {
		t.Errorf("%+v, then %+v", first, again)
	}
	if n := len(w.rows.claims); n != 1 {
		t.Errorf("%d claims on the row", n)
	}
	w.sends(first, activities.Recorded)
	w.posted(1)
	// Once used, the row says what became of it.
	if res := w.claims(activities.Finished); res.Row.Status != herald.StatusSent {
		t.Errorf("row %+v", res.Row)
	}
	w.free()
}

// A workflow that never comes to send must not keep the hook's slot.
func TestAnUnusedClaimExpires(t *testing.T) {
	w := newWorld(t)
	w.rules = activities.Rules{Timeout: time.Second, Allowance: time.Second, Lease: 2*time.Second + 20*time.Millisecond, Backoff: time.Minute}
	w.restart()
	c := w.claims(activities.Won)
	eventually(t, "the claim expires", func() bool { return len(w.gate.ends()) == 1 })
	w.free()
	if e := w.gate.ends()[0]; e.State != activities.Lost || e.Ref != ref() {
		t.Errorf("told the feed %+v", e)
	}
	w.sends(c, activities.Unsent)
	w.posted(0)
	// It is known to have sent nothing, so nobody waits for its lease.
	w.claims(activities.Won)
}

// A lease that a slow answer has used up is no claim to hand out, and none to
// wait for.
func TestAClaimWithoutLifeIsNotHandedOut(t *testing.T) {
	w := newWorld(t)
	w.rows.onClaim(func() { w.pass(5 * time.Second) })
	w.claims(activities.Lost)
	w.free()
	w.sends(activities.ClaimResult{Version: w.rows.row(id).Modified}, activities.Unsent)
	w.sends(w.claims(activities.Won), activities.Recorded)
	w.posted(1)
}

// The claim commits and its answer is lost: whether it is ours nobody can say,
// so it is respected like anybody's.
func TestAClaimWhoseAnswerIsLost(t *testing.T) {
	w := newWorld(t)
	w.faults.set("claim after", 1)
	if res, err := w.ask(); err == nil || res.State == activities.Won {
		t.Fatalf("claim %+v, %v", res, err)
	}
	w.free()
	w.sends(activities.ClaimResult{Version: w.rows.row(id).Modified}, activities.Unsent)
	w.claims(activities.Leased)
	w.pass(29 * time.Second)
	w.claims(activities.Leased)
	w.pass(2 * time.Second)
	w.sends(w.claims(activities.Won), activities.Recorded)
	w.posted(1)
}

// Phorge's rule: the threshold-th newest failure within the window, its first
// second included.
func TestBreakerEdges(t *testing.T) {
	for _, tt := range []struct {
		evidence int64
		want     activities.ClaimState
		wait     time.Duration
	}{
		{0, activities.Won, 0},
		{start - 301, activities.Won, 0},
		{start - 300, activities.BreakerOpen, time.Second},
		{start, activities.BreakerOpen, 301 * time.Second},
	} {
		w := newWorld(t)
		w.rows.evidence = tt.evidence
		if res := w.claims(tt.want); res.Wait != tt.wait {
			t.Errorf("evidence %d before now: wait %s, want %s", start-tt.evidence, res.Wait, tt.wait)
		}
	}
}

// A failed row whose time lies ahead, because the database's clock was put back
// since, rests a backoff from when it was first seen so, not until the clock has
// caught up.
func TestAFailureFromBeforeAStepBackRestsABackoff(t *testing.T) {
	w := newWorld(t)
	w.to.answer = answers(500)
	w.sends(w.claims(activities.Won), activities.Recorded)
	w.jump(-time.Hour)
	if res := w.claims(activities.Resting); res.Wait != time.Minute {
		t.Errorf("wait %v", res.Wait)
	}
	w.pass(59 * time.Second)
	if res := w.claims(activities.Resting); res.Wait != time.Second {
		t.Errorf("wait %v", res.Wait)
	}
	w.pass(time.Second)
	w.sends(w.claims(activities.Won), activities.Recorded)
	// The second failure is written in the new time, under a version of the old.
	if r := w.rows.row(id); r.Modified < r.LastEpoch+3000 {
		t.Fatalf("row %+v", r)
	}
	w.pass(59 * time.Second)
	w.claims(activities.Leased)
	w.pass(31 * time.Second)
	w.claims(activities.Won)
}

func TestBreakerIsLoggedOnceInAndOnceOut(t *testing.T) {
	const opened = "breaker open: too many of the hook's requests failed, nothing is sent to it for now"
	const closed = "breaker closed: the hook's failures lie back far enough"
	w := newWorld(t)
	logged := func(in, out int) {
		t.Helper()
		if i, o := len(w.lines(opened)), len(w.lines(closed)); i != in || o != out {
			t.Errorf("%d lines in and %d out, want %d and %d", i, o, in, out)
		}
	}
	w.rows.evidence = start - 10
	for range 3 {
		w.claims(activities.BreakerOpen)
	}
	logged(1, 0)
	if n := w.OpenBreakers(); n != 1 {
		t.Errorf("%d open", n)
	}
	w.pass(291 * time.Second)
	if n := w.OpenBreakers(); n != 0 {
		t.Errorf("%d open when the window has slid and nobody asked", n)
	}
	logged(1, 0)
	w.sends(w.claims(activities.Won), activities.Recorded)
	logged(1, 1)
	w.claims(activities.Finished)
	logged(1, 1)
	w.insert(id, phid)
	w.rows.evidence = start + 291
	w.claims(activities.BreakerOpen)
	logged(2, 1)
}
