package acceptance

import (
	"fmt"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// A breaker whose window is short: it opens, nobody's row is touched by either
// of two processes, it closes as the failures slide out, and what waited is
// delivered. Each process says so at most once each way.
func TestTheBreakerOpensTouchesNothingAndSlidesShut(t *testing.T) {
	t.Parallel()
	l := newLane(t, map[string]string{"WAYBILL_HERALD_BREAKER_WINDOW": "12s", "WAYBILL_HERALD_RETRY_BACKOFF": "60s"})
	second := l.Serve(t, map[string]string{"WAYBILL_HERALD_BREAKER_WINDOW": "12s", "WAYBILL_HERALD_RETRY_BACKOFF": "60s"})
	h := l.hook(t, "status500", "window")
	// Rows that fail for good count like those that are tried again.
	var rows []devstack.Row
	for i := range 14 {
		rows = append(rows, queue(t, l.Site, h, l.object, []string{never, forever}[i%2]))
	}
	said := func(text string) int {
		return len(l.serve.Log.Find(text, h.PHID)) + len(second.Log.Find(text, h.PHID))
	}
	scenario.Until(t, patience, "the breaker is said to be open", func() bool { return said("breaker open") > 0 })
	now := func() (all []devstack.Row) {
		for _, r := range rows {
			all = append(all, row(t, l.Site, r.PHID))
		}
		return all
	}
	before := now()
	failed := 0
	var tenth int64 // when the first of the ten failed
	for _, r := range before {
		if r.LastResult != "fail" {
			continue
		}
		failed++
		if tenth == 0 || r.LastEpoch < tenth {
			tenth = r.LastEpoch
		}
	}
	if failed != 10 {
		t.Errorf("%d rows failed when the breaker opened, want 10", failed)
	}
	if err := l.SetHookURI(t.Context(), h.PHID, l.receiver.URL("status200", "window")); err != nil {
		t.Fatal(err)
	}
	// Watched until 3 s before the window slides, so that the last look is over by
	// then; its boundary second is the total table's affair.
	left := time.Until(time.Unix(tenth+9, 0))
	if left <= 0 {
		t.Fatalf("the breaker was seen %v too late to watch it", -left)
	}
	scenario.Never(t, left, "a row changes while the breaker is open", func() bool {
		return fmt.Sprint(now()) != fmt.Sprint(before) || len(l.receiver.Case("window")) != 10
	})
	for i, r := range rows {
		if before[i].LastResult == "none" {
			await(t, l.Site, r.PHID, "sent", "okay")
		}
	}
	for _, p := range []*scenario.Process{l.serve, second} {
		in := len(p.Log.Find("breaker open", h.PHID))
		out := len(p.Log.Await(t, patience, in, "breaker closed", h.PHID))
		if in > 1 || out != in {
			t.Errorf("one process said %d times that the breaker is open, and %d times that it is closed", in, out)
		}
	}
}

// Nine rows that always fail leave the breaker shut, and the hook's good rows
// pass them by: retries and first tries take turns. The retries never run out:
// nine of them take longer than their backoff.
func TestNineFailingRowsDoNotKeepGoodOnesWaiting(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	to := newTally(t)
	h := hook(t, l.Site, to.URL("/refuses"))
	var bad []string
	for range 9 {
		bad = append(bad, task(t, l.Site))
	}
	to.RefuseOnly(bad)
	for _, object := range bad {
		queue(t, l.Site, h, object, forever)
	}
	for _, object := range bad {
		scenario.Until(t, patience, "a bad row is tried", func() bool { return len(to.About(object)) > 0 })
	}
	if err := l.SetHookURI(t.Context(), h.PHID, to.URL("/drags")); err != nil {
		t.Fatal(err)
	}
	scenario.Until(t, patience, "the retries come", func() bool { return to.Calls() > len(bad)+1 })
	worst := 0
	for range 10 {
		object := task(t, l.Site)
		r := queue(t, l.Site, h, object, never)
		scenario.Until(t, patience, "the good row's workflow begins", func() bool {
			return l.Open(t, "request/"+r.PHID) || l.Closed(t, "request/"+r.PHID)
		})
		came := to.Calls()
		await(t, l.Site, r.PHID, "sent", "okay")
		worst = max(worst, to.Before(object)-came)
	}
	// One that had the turn and had not come yet, and one more that took it while
	// the good row's claim was on its way.
	t.Logf("at most %d other calls came in between", worst)
	if worst > 2 {
		t.Errorf("%d other calls came between a good row's beginning and its call", worst)
	}
	for _, object := range bad {
		scenario.Until(t, patience, "bad rows go on being tried", func() bool { return len(to.About(object)) > 1 })
	}
	if n := len(l.serve.Log.Find("breaker", h.PHID)); n > 0 {
		t.Errorf("%d lines about a breaker with nine failing rows", n)
	}
}
