package starter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/activities"
	"waybill/internal/sourcetest"
)

// slowly delivers each row after a while.
func slowly(took time.Duration) func(*row) (activities.Ended, time.Duration) {
	return func(r *row) (activities.Ended, time.Duration) {
		r.done = true
		return activities.Ended{State: activities.Won}, took
	}
}

func TestOldestFirstOneAtATimeTheNextAtOnce(t *testing.T) {
	const took = 50 * time.Millisecond
	play(t, func(w *world, _ *Config) {
		w.hooks, w.attempt = []string{"a", "b", "c"}, slowly(took)
		for n := range 100 {
			w.add(fmt.Sprintf("a/%d", n), fmt.Sprintf("b/%d", n), fmt.Sprintf("c/%d", n))
		}
	}, func(w *world) {
		w.wait(99 * took)
		if w.mostBusy != 1 {
			t.Errorf("%d attempts at once to one hook", w.mostBusy)
		}
		for _, hook := range w.hooks {
			var mine []string
			for _, r := range w.requests() {
				if strings.HasPrefix(r, hook) {
					mine = append(mine, r)
				}
			}
			if len(mine) != 100 {
				t.Fatalf("%s: %d started, want 100 without a pause between them", hook, len(mine))
			}
			for n, r := range mine {
				if r != fmt.Sprintf("%s/%d", hook, n) {
					t.Errorf("%s is number %d", r, n)
				}
			}
		}
		w.wait(took)
	})
}

func TestNewRowsAreSeenByTheNextPoll(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.hooks = []string{"a"} }, func(w *world) {
		w.wait(10 * time.Second)
		w.add("a/1")
		w.wait(100 * time.Millisecond)
		w.expect("a/1")
	})
}

func TestMoreNewRowsThanOnePollTakes(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.hooks = []string{"a", "b"} }, func(w *world) {
		for n := range pollLimit + 5 {
			w.add(fmt.Sprintf("a/%d", n))
		}
		w.add("b/1")
		w.wait(100 * time.Millisecond)
		if n := len(w.requests()); n != pollLimit+6 {
			t.Errorf("%d started", n)
		}
	})
}

// The end of the awaited attempt cannot be crowded out, and no other counts.
func TestForeignEndsNeitherCountNorCrowdOut(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.hooks, w.attempt = []string{"a"}, slowly(time.Second)
		w.add("a/1", "a/2")
	}, func(w *world) {
		for range 1000 {
			w.starter.Ended(activities.Ended{Ref: activities.Ref{PHID: "a/retry", HookPHID: "a"}, State: activities.Won})
			w.starter.Ended(activities.Ended{Ref: activities.Ref{HookPHID: "a"}, State: activities.Won})
			w.starter.Ended(activities.Ended{Ref: activities.Ref{PHID: "x", HookPHID: "unknown"}})
		}
		w.wait(999 * time.Millisecond)
		w.expect("a/1")
		w.wait(time.Millisecond)
		w.expect("a/1", "a/2")
		w.wait(time.Second)
	})
}

// The worker may be done before the start of its workflow is answered.
func TestAnEndQuickerThanItsStart(t *testing.T) {
	f := newFeed(&Starter{}, "a", 0)
	end := f.await("a/1")
	f.ended(activities.Ended{Ref: activities.Ref{PHID: "a/1"}, State: activities.Won})
	f.ended(activities.Ended{Ref: activities.Ref{PHID: "a/1"}, State: activities.Lost})
	if e := <-end; e.State != activities.Won {
		t.Errorf("ended %q", e.State)
	}
}

// An end that was not heard of, in another process, costs a lease and no more.
func TestAnAttemptThatIsNotHeardOfAgain(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.hooks = []string{"a"}
		w.attempt = func(r *row) (activities.Ended, time.Duration) {
			if r.PHID == "a/1" {
				w.open["request/a/1"] = true
				return activities.Ended{}, never
			}
			r.done = true
			return activities.Ended{State: activities.Won}, 0
		}
		w.add("a/1", "a/2")
	}, func(w *world) {
		w.wait(29 * time.Second)
		w.expect("a/1")
		w.wait(time.Second)
		w.expect("a/1", "a/2")
	})
}

func TestRowsWithOpenWorkflowsAreSkippedAndLookedAtAgain(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.hooks = []string{"a"}
		w.add("a/1", "a/2")
		w.open["request/a/1"] = true
	}, func(w *world) {
		w.expect("a/2")
		w.change(func() { w.open["request/a/1"] = false })
		w.wait(openRest + sweepSteps*sweepEvery)
		w.expect("a/2", "a/1")
	})
}

// Several starters feed a hook whose owner has none. One that finds a new row
// under way by another's hand does not start the row behind it meanwhile: only
// the hook's owner knows that the hook is busy.
func TestARowThatAnotherStarterSendsHoldsTheOnesBehindIt(t *testing.T) {
	prepare := func(w *world, c *Config) {
		c.Watch = func(string) bool { return true }
		w.open = map[string]bool{"request/a/1": true}
		w.hooks = []string{"a"}
		w.add("a/1", "a/2")
	}
	play(t, prepare, func(w *world) {
		w.wait(3 * openRest)
		w.expect()
		w.change(func() { w.open["request/a/1"], w.rows[0].done = false, true })
		w.wait(3 * openRest)
		if got := w.requests(); !slices.Contains(got, "a/2") {
			t.Errorf("started %q", got)
		}
	})
}

// What each state of an attempt means for its row and for the next in line:
// when they are started (again). The first attempt on a/1 ends with the state.
func TestEveryEndOfAnAttempt(t *testing.T) {
	const stated = 20 * time.Second
	sweep := sweepSteps * sweepEvery
	type when struct{ next, again time.Duration } // again: not before
	table := map[activities.ClaimState]when{
		// The row is over, so not again; the default of the world.
		activities.Won:           {0, never},
		activities.Finished:      {0, never},
		activities.Misconfigured: {0, never},
		activities.Collected:     {0, never},
		// Only this row waits.
		activities.Untouched: {0, untouchedRest},
		activities.Leased:    {0, stated},
		activities.Resting:   {0, stated},
		// The whole hook waits, and begins with the oldest again.
		activities.BreakerOpen: {stated, stated},
		activities.Paused:      {pausesEvery, pausesEvery},
		activities.Unowned:     {notOwnedRest, notOwnedRest},
		activities.Elsewhere:   {notOwnedRest, notOwnedRest},
		activities.Busy:        {notOwnedRest, notOwnedRest},
		activities.Lost:        {notOwnedRest, notOwnedRest},
		"":                     {troubleRest, troubleRest},
	}
	for _, name := range append(sourcetest.Constants(t, "../activities/types.go", "ClaimState"), "") {
		want, ok := table[activities.ClaimState(name)]
		if !ok {
			t.Errorf("the table lacks %q", name)
			continue
		}
		t.Run("state "+name, func(t *testing.T) {
			play(t, func(w *world, _ *Config) {
				w.hooks, w.attempt = []string{"a"}, firstEnds(activities.ClaimState(name), stated, want.again == never)
				w.add("a/1", "a/2")
			}, func(w *world) {
				w.wait(want.again%never + sweep)
				first, second := w.ats("a/1"), w.ats("a/2")
				if len(second) != 1 || second[0].Sub(first[0]) != want.next {
					t.Errorf("next in line at %v, want %v later than %v", second, want.next, first)
				}
				switch {
				case want.again == never:
					if len(first) != 1 {
						t.Errorf("started again: %v", first)
					}
				case len(first) != 2:
					t.Errorf("started at %v", first)
				case first[1].Sub(first[0]) < want.again:
					t.Errorf("again after %v, want %v", first[1].Sub(first[0]), want.again)
				}
			})
		})
	}
}

// firstEnds ends the first attempt on a/1 with a state; all others deliver.
func firstEnds(state activities.ClaimState, wait time.Duration, over bool) func(*row) (activities.Ended, time.Duration) {
	met := false
	return func(r *row) (activities.Ended, time.Duration) {
		if r.PHID == "a/1" && !met {
			met, r.done = true, over
			return activities.Ended{State: state, Wait: wait}, 0
		}
		r.done = true
		return activities.Ended{State: activities.Won}, 0
	}
}

// A hook that may not be called is asked about less and less often, and without
// holding room that others need.
func TestHooksAtRestHoldNoRoom(t *testing.T) {
	for _, state := range []activities.ClaimState{activities.BreakerOpen, activities.Busy, activities.Paused, ""} {
		play(t, func(w *world, _ *Config) {
			w.hooks, w.room = []string{"a", "b"}, make(chan struct{}, 1)
			w.attempt = func(r *row) (activities.Ended, time.Duration) {
				r.done = r.HookPHID == "b"
				if r.done {
					return activities.Ended{State: activities.Won}, 0
				}
				return activities.Ended{State: state, Wait: time.Hour}, 0
			}
			w.add("a/1")
		}, func(w *world) {
			w.wait(time.Second)
			w.add("b/1")
			w.wait(100 * time.Millisecond)
			if !slices.Contains(w.requests(), "b/1") {
				t.Errorf("%q: a resting hook keeps the room", state)
			}
			w.wait(9 * time.Minute)
			if n := len(w.ats("a/1")); n > 9*60*2+10 || n < 9 {
				t.Errorf("%q: asked %d times in nine minutes", state, n)
			}
		})
	}
}

// An open breaker that says nothing about its end must not become a hot loop.
func TestBreakerWithoutAnEnd(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.hooks = []string{"a"}
		w.attempt = func(*row) (activities.Ended, time.Duration) {
			return activities.Ended{State: activities.BreakerOpen}, 0
		}
		w.add("a/1")
	}, func(w *world) {
		w.wait(time.Minute)
		if n := len(w.ats("a/1")); n > 61 {
			t.Errorf("asked %d times in a minute", n)
		}
	})
}

func TestNotOwnedHooksAreNotFed(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.hooks, w.unowned["a"] = []string{"a"}, true
		w.add("a/1")
	}, func(w *world) {
		w.wait(time.Minute)
		w.expect()
		if n := w.asked("ready"); n > 70 {
			t.Errorf("asked %d times in a minute who owns the hook", n)
		}
		// Once, to see whether its announcement is urgent.
		if n := w.asked("heads"); n > 1 {
			t.Errorf("read the line %d times", n)
		}
		w.change(func() { w.unowned["a"] = false })
		w.wait(mostRest)
		w.expect("a/1")
	})
}

// Room bounds what is under way, and waiting for it ends with the context.
func TestRoomBoundsAttempts(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.room, w.attempt = make(chan struct{}, 2), slowly(20*time.Second)
		for n := range 5 {
			hook := fmt.Sprint(n)
			w.hooks = append(w.hooks, hook)
			w.add(hook + "/1")
		}
	}, func(w *world) {
		w.wait(19 * time.Second)
		if n := len(w.requests()); n != 2 {
			t.Errorf("%d attempts begun with room for 2", n)
		}
	})
}
