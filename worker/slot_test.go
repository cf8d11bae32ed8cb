package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// queueing lets attempts of these kinds wait in this order for a taken slot and
// returns in which order they got it.
func queueing(t *testing.T, holder turn, kinds ...turn) (got []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var s slot
		if !s.enter(t.Context(), holder, patience) {
			t.Fatal("a free slot was refused")
		}
		order := make(chan string, len(kinds))
		counts := [2]int{}
		for _, k := range kinds {
			counts[k]++
			name := fmt.Sprint([]string{"first", "retry"}[k], counts[k])
			go func() {
				if s.enter(t.Context(), k, patience) {
					order <- name
				}
			}()
			synctest.Wait()
		}
		for range kinds {
			s.leave()
			got = append(got, <-order)
			synctest.Wait()
		}
		if s.idle() {
			t.Error("idle while the last one is in it")
		}
		s.leave()
		if !s.idle() {
			t.Error("not idle in the end")
		}
	})
	return got
}

func TestFirstTriesAndRetriesAlternate(t *testing.T) {
	got := queueing(t, firstTry, firstTry, firstTry, firstTry, retry, retry, retry)
	if want := []string{"retry1", "first1", "retry2", "first2", "retry3", "first3"}; !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
	got = queueing(t, retry, retry, retry, firstTry)
	if want := []string{"first1", "retry1", "retry2"}; !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
}

func TestOneKindAloneIsFirstInFirstOut(t *testing.T) {
	got := queueing(t, firstTry, firstTry, firstTry, firstTry)
	if want := []string{"first1", "first2", "first3"}; !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
}

func TestPatienceEndsAndLeavesNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slot
		s.enter(t.Context(), firstTry, patience)
		begun := time.Now()
		if s.enter(t.Context(), retry, patience) {
			t.Error("entered a taken slot")
		}
		if waited := time.Since(begun); waited != patience {
			t.Errorf("waited %v", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if s.enter(ctx, firstTry, patience) || time.Since(begun) != patience+time.Second {
			t.Error("waited beyond its context")
		}
		s.leave()
		if !s.idle() || !s.enter(t.Context(), retry, patience) {
			t.Error("those who gave up still have a place")
		}
	})
}

// However waiting and giving up race with leaving, there is one in the slot at
// a time, and it is free in the end.
func TestSlotUnderRaces(t *testing.T) {
	var s slot
	var inside, most, entered atomic.Int64
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			for i := range 300 {
				// Patience of about the time that others need: both ends happen.
				if !s.enter(t.Context(), turn(n%2), time.Duration(i%50)*time.Microsecond) {
					continue
				}
				entered.Add(1)
				now := inside.Add(1)
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
				}
				inside.Add(-1)
				s.leave()
			}
		})
	}
	all.Wait()
	if most.Load() != 1 || entered.Load() == 0 {
		t.Errorf("%d in the slot at once, %d entered", most.Load(), entered.Load())
	}
	if !s.idle() || len(s.waiting[0])+len(s.waiting[1]) != 0 {
		t.Error("somebody is left behind")
	}
}
