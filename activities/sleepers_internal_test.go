package activities

import (
	"fmt"
	"testing"
	"time"

	"waybill/internal/sourcetest"
)

// place is what becomes of a request's place among its hook's sleepers.
type place string

const (
	taken  place = "taken"  // it rests: a place, or it is told that there is none
	kept   place = "kept"   // as it was
	vacant place = "vacant" // its workflow ends
)

func sleeping(lease time.Duration) *Herald {
	return NewHerald(Config{Clock: func() time.Time { return time.Unix(1000, 0) }, Rules: Rules{Lease: lease}})
}

func sleeper(n int) Ref {
	return Ref{ID: uint64(n), PHID: fmt.Sprint("PHID-HWBR-", n), HookPHID: "PHID-HWBH-hook"}
}

// crowd fills all places of the hook with others, but so many.
func (h *Herald) crowd(t *testing.T, free int) {
	t.Helper()
	for n := range mostSleepers - free {
		if h.crowded(sleeper(1000+n), time.Hour) {
			t.Fatalf("place %d is refused", n)
		}
	}
}

func (h *Herald) has(r Ref) bool {
	_, ok := h.sleepers.hooks[r.HookPHID][r.PHID]
	return ok
}

// Every state that a request's workflow rests after takes a place or says that
// there is none; every state that ends it gives its place up.
func TestEveryClaimStateAndItsPlace(t *testing.T) {
	type pair struct{ first, later place }
	same := func(p place) pair { return pair{p, p} }
	table := map[ClaimState]pair{
		"": same(kept), Won: same(kept), Elsewhere: same(kept), Unowned: same(kept),
		Leased: same(taken), Resting: same(taken),
		Busy: {vacant, taken}, Lost: {vacant, taken},
		Finished: same(vacant), Misconfigured: same(vacant), Collected: same(vacant),
		Untouched: same(vacant), Paused: same(vacant), BreakerOpen: same(vacant),
	}
	names := sourcetest.Constants(t, "types.go", "ClaimState")
	if len(table) != len(names)+1 {
		t.Errorf("the table has %d states, there are %d", len(table), len(names))
	}
	for _, name := range append(names, "") {
		for attempt, want := range map[int]place{1: table[ClaimState(name)].first, 2: table[ClaimState(name)].later} {
			becomes(t, fmt.Sprintf("%s, attempt %d", name, attempt), want, func(h *Herald) bool {
				res := ClaimResult{State: ClaimState(name), Wait: time.Second}
				h.afterClaim(ClaimInput{Ref: sleeper(1), Attempt: attempt}, &res)
				return res.Crowded
			})
		}
	}
}

func TestEverySendStateAndItsPlace(t *testing.T) {
	type pair struct{ final, again place }
	table := map[SendState]pair{
		Recorded: {vacant, taken}, Unwritten: {vacant, taken},
		Overtaken: {vacant, vacant}, Vanished: {vacant, vacant},
		Unknown: {taken, taken}, Unsent: {taken, taken},
	}
	for _, name := range sourcetest.Constants(t, "types.go", "SendState") {
		if _, ok := table[SendState(name)]; !ok {
			t.Errorf("the table lacks %q", name)
		}
		for again, want := range map[bool]place{false: table[SendState(name)].final, true: table[SendState(name)].again} {
			becomes(t, fmt.Sprintf("%s, retry %t", name, again), want, func(h *Herald) bool {
				res := SendResult{State: SendState(name), Retry: again, Wait: time.Second}
				h.afterSend(SendInput{Ref: sleeper(1)}, &res)
				return res.Crowded
			})
		}
	}
}

// becomes looks at a request with a place and at one without, in a hook with
// room and in one without.
func becomes(t *testing.T, what string, want place, after func(*Herald) (crowded bool)) {
	t.Helper()
	for _, had := range []bool{true, false} {
		for _, room := range []bool{true, false} {
			h := sleeping(time.Minute)
			if had {
				h.crowded(sleeper(1), time.Second)
			}
			if !room {
				free := 0
				if had {
					free = 1
				}
				h.crowd(t, free)
			}
			crowded := after(h)
			wantHas := map[place]bool{taken: had || room, kept: had, vacant: false}[want]
			if h.has(sleeper(1)) != wantHas || crowded != (want == taken && !wantHas) {
				t.Errorf("%s (place %t, room %t): has a place %t, crowded %t, want %s", what, had, room, h.has(sleeper(1)), crowded, want)
			}
		}
	}
}

// A hundred of a hook's requests rest in workflows, whoever is first; they keep
// their places, and other hooks have their own.
func TestAHundredSleepersOfAHook(t *testing.T) {
	h := sleeping(time.Minute)
	for range 2 {
		for n := range 150 {
			if got, want := h.crowded(sleeper(n), time.Minute), n >= mostSleepers; got != want {
				t.Errorf("request %d: crowded %t", n, got)
			}
		}
	}
	other := sleeper(200)
	other.HookPHID = "PHID-HWBH-other"
	if h.crowded(other, time.Minute) {
		t.Error("another hook's first sleeper finds no place")
	}
	h.sleepers.leave(sleeper(7))
	if h.crowded(sleeper(120), time.Minute) || !h.crowded(sleeper(121), time.Minute) {
		t.Error("a place that was given up is not one place for another")
	}
}

// A run that was ended by somebody does not hold its place for ever; one that is
// only woken late keeps it.
func TestAnOverdueSleeperLosesItsPlace(t *testing.T) {
	h := sleeping(time.Minute)
	h.crowd(t, 1)
	h.crowded(sleeper(1), time.Minute)
	at := func(d time.Duration) time.Time { return h.Clock().Add(d) }
	if h.sleepers.rest(sleeper(2), at(2*time.Minute), at(time.Minute+overdue)) {
		t.Error("a place is lost while a busy server may still wake its run")
	}
	if !h.sleepers.rest(sleeper(2), at(2*time.Minute), at(time.Minute+overdue+1)) {
		t.Error("the place of an overdue sleeper is not free")
	}
}

// Hooks without sleepers are not remembered.
func TestSleepersOfIdleHooksAreForgotten(t *testing.T) {
	h := sleeping(time.Minute)
	h.crowded(sleeper(1), time.Second)
	h.sleepers.leave(sleeper(1))
	h.sleepers.leave(sleeper(2))
	if n := len(h.sleepers.hooks); n != 0 {
		t.Errorf("%d hooks are remembered", n)
	}
}

// A workflow that asks in vain rests longer than its answer says. Its place is
// kept as long, or one more of its hook would rest for each that does.
func TestAPlaceIsKeptAsLongAsItsWorkflowMayRest(t *testing.T) {
	for name, end := range map[string]func(*Herald) bool{
		"busy": func(h *Herald) bool {
			res := ClaimResult{State: Busy}
			h.afterClaim(ClaimInput{Ref: sleeper(1), Attempt: 2}, &res)
			return res.Crowded
		},
		"unsent": func(h *Herald) bool {
			res := SendResult{State: Unsent}
			h.afterSend(SendInput{Ref: sleeper(1), Attempt: 2}, &res)
			return res.Crowded
		},
	} {
		now := time.Unix(1000, 0)
		h := NewHerald(Config{Clock: func() time.Time { return now }, Rules: Rules{Lease: time.Minute}})
		h.crowd(t, 1)
		if end(h) {
			t.Fatalf("%s: no place, and there is one", name)
		}
		now = now.Add(LongestInVain + overdue)
		if !h.crowded(sleeper(2), time.Second) {
			t.Errorf("%s: its place was given away while it may rest", name)
		}
		if now = now.Add(time.Nanosecond); h.crowded(sleeper(2), time.Second) {
			t.Errorf("%s: its place is kept for one that does not come back", name)
		}
	}
}
