package activities

import (
	"testing"
	"time"

	"waybill/internal/herald"
)

func TestRecentIsBounded(t *testing.T) {
	var r recent[int]
	for i := range uint64(5 * generation) {
		r.set(i, int(i))
		if n := len(r.young) + len(r.old); n > 2*generation {
			t.Fatalf("%d entries after %d rows", n, i)
		}
	}
	if _, ok := r.get(0); ok {
		t.Error("the first row is still remembered")
	}
	if v, ok := r.get(5*generation - 1); !ok || v != 5*generation-1 {
		t.Errorf("the last row: %d, %v", v, ok)
	}
}

// What is asked about stays: a lease that somebody waits for is not forgotten.
func TestRecentKeepsWhatIsAskedAbout(t *testing.T) {
	var r recent[string]
	r.set(1, "kept")
	for i := range uint64(4 * generation) {
		r.set(100+i, "passing")
		if i%(generation/2) == 0 {
			if v, ok := r.get(1); !ok || v != "kept" {
				t.Fatalf("lost after %d rows", i)
			}
		}
	}
}

func TestSightingsAndReportsAreBounded(t *testing.T) {
	var s sightings
	var r reports
	now := time.Unix(0, 0)
	for i := range uint64(3 * generation) {
		s.age(herald.Claim{ID: i, Version: 1}, time.Time{}, now)
		s.void(herald.Claim{ID: i + 1<<40, Version: 1})
		r.first(i, 1)
	}
	if n := len(s.seen.young) + len(s.seen.old); n > 2*generation {
		t.Errorf("%d sightings", n)
	}
	if n := len(r.told.young) + len(r.told.old); n > 2*generation {
		t.Errorf("%d reports", n)
	}
}

func TestSightings(t *testing.T) {
	var s sightings
	now := time.Unix(1000, 0)
	var since time.Time
	check := func(version int64, at time.Time, want time.Duration, wantVoid bool) {
		t.Helper()
		if age, void := s.age(herald.Claim{ID: 7, Version: version}, since, at); void != wantVoid || (!void && age != want) {
			t.Errorf("version %d: age %s, void %v, want %s, %v", version, age, void, want, wantVoid)
		}
	}
	check(1, now, 0, false)
	check(1, now.Add(9*time.Second), 9*time.Second, false)
	check(2, now.Add(10*time.Second), 0, false)
	s.void(herald.Claim{ID: 7, Version: 2})
	check(2, now.Add(11*time.Second), 0, true)
	check(3, now.Add(12*time.Second), 0, false) // void is one claim, not the row
	// Nobody else has claimed since the lock was taken.
	since = now.Add(-time.Minute)
	check(3, now.Add(13*time.Second), time.Second, false)
	check(4, now.Add(14*time.Second), 74*time.Second, false)
	s.own(herald.Claim{ID: 7, Version: 5}, now.Add(15*time.Second))
	check(5, now.Add(20*time.Second), 5*time.Second, false)
}

func TestRules(t *testing.T) {
	r := Rules{Timeout: 15 * time.Second, Allowance: 10 * time.Second, Lease: 32 * time.Second}
	if got := r.useWithin(); got != 7*time.Second {
		t.Errorf("a claim may be used within %s", got)
	}
	if got := r.overWithin(); got != 22*time.Second {
		t.Errorf("a call must be over within %s", got)
	}
	if r.useWithin()+r.Timeout != r.overWithin() {
		t.Error("a call that begins at the last moment must have its whole timeout")
	}
}

// A timer that runs out while its claim is taken must not touch the next one.
func TestALateTimerLeavesTheNextClaim(t *testing.T) {
	c := claims{held: map[string]*held{}}
	expired := func() { t.Error("a claim expired") }
	first, second := &held{claim: herald.Claim{Version: 1}}, &held{claim: herald.Claim{Version: 2}}
	c.put("row", first, time.Hour, expired)
	if got := c.take("row", 1); got != first {
		t.Fatalf("took %+v", got)
	}
	if c.remove("row", first) {
		t.Error("a claim that was taken expired as well")
	}
	c.put("row", second, time.Hour, expired)
	if c.remove("row", first) || c.peek("row") != second {
		t.Error("the first claim's timer took the second claim")
	}
	if c.take("row", 1) != nil || c.take("row", 2) != second || c.take("row", 2) != nil {
		t.Error("a claim is handed out by its version, once")
	}
}

// A life that is over already expires at once and only once.
func TestAClaimWithNoLifeLeft(t *testing.T) {
	for _, life := range []time.Duration{0, -time.Hour} {
		c := claims{held: map[string]*held{}}
		gone := make(chan struct{})
		c.put("row", &held{}, life, func() { close(gone) })
		<-gone
		if c.peek("row") != nil {
			t.Error("an expired claim can still be taken")
		}
	}
}
