package starter

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
)

// CountWorkflow counts the open workflows of hooks.
func (w *world) CountWorkflow(_ context.Context, r *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	if err := w.ask("count"); err != nil {
		return nil, err
	}
	if !strings.Contains(r.GetQuery(), "TaskQueue = 'waybill-test'") {
		return nil, fmt.Errorf("other installations are counted too: %s", r.GetQuery())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.miscount
	for id, open := range w.open {
		if open && strings.HasPrefix(id, "hook/") {
			n++
		}
	}
	return &workflowservice.CountWorkflowExecutionsResponse{Count: n}, nil
}

// manyHooks are too many for the doubts about single ones to find one soon.
func manyHooks(w *world, _ *Config) {
	for n := range 200 {
		w.hooks = append(w.hooks, fmt.Sprint(n))
	}
	w.hooks = append(w.hooks, "b\xff") // has no workflow
}

// Ending one hook's workflow from the Web UI among many is noticed within two
// counts.
func TestAMissingHookIsMissedSoon(t *testing.T) {
	play(t, manyHooks, func(w *world) {
		w.wait(time.Minute)
		w.change(func() { w.open["hook/117"] = false })
		w.wait(3*censusEvery + 2*sweepEvery)
		if n := w.announcements("117"); n != 2 {
			t.Errorf("announced %d times", n)
		}
		before := w.asked("execute")
		w.wait(5 * time.Minute)
		// Once more for all, if a doubt about that very hook was as quick as the count.
		if n := w.asked("execute") - before; n > 200+5*60/int(doubtEvery/time.Second)+2 {
			t.Errorf("%d questions in five minutes in which nothing is missing", n)
		}
	})
}

// A count that is always short, whatever its reason, costs one look at all.
func TestACountThatIsAlwaysShort(t *testing.T) {
	play(t, func(w *world, c *Config) { manyHooks(w, c); w.miscount = -3 }, func(w *world) {
		w.wait(5 * time.Minute)
		if n := w.asked("execute"); n > 2*200+5*60/int(doubtEvery/time.Second)+5 {
			t.Errorf("%d questions", n)
		}
	})
}

// Where nobody counts, all goes on as without.
func TestAServerThatDoesNotCount(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.hooks, w.broken["count"] = []string{"a"}, errAway; w.add("a/1") }, func(w *world) {
		w.wait(time.Minute)
		w.expect("a/1")
		if w.asked("count") == 0 || w.logged("does not answer") != 0 {
			t.Errorf("asked %d times, lines %v", w.asked("count"), w.logs.All())
		}
	})
}

// A server that fails and answers again all the time is not asked for every hook
// each time, and is in the end.
func TestAFlappingServerIsAskedForAllHooksOnceAMinute(t *testing.T) {
	play(t, manyHooks, func(w *world) {
		w.wait(time.Minute)
		before := w.asked("execute")
		for n := range 60 {
			w.breaks("execute", errAway)
			w.add(fmt.Sprintf("7/%d", n))
			w.wait(2 * time.Second)
			w.breaks("execute", nil)
			w.wait(3 * time.Second)
		}
		if n := w.asked("execute") - before; n > 7*200+60*10 {
			t.Errorf("%d questions in five minutes", n)
		}
		w.change(func() { w.open["hook/117"] = false })
		w.wait(3*censusEvery + lifeEvery + 2*sweepEvery)
		if n := w.announcements("117"); n != 2 {
			t.Errorf("announced %d times", n)
		}
	})
}
