package acceptance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// hanging and queued are the flood: hooks whose receivers hang, and rows queued
// for each of them before anything else.
const (
	hanging = 50
	queued  = 200
)

// flooded is how long a call to a hanging receiver takes to give up. A healthy
// row that waits behind one waits about as long; half of it is far from that
// and from what a busy machine needs.
const flooded = 20 * time.Second

// flood queues rows for hooks that hang and one that always fails, in one
// statement for each: 10,000 rows are meant to be there first.
func flood(t *testing.T, s *scenario.Site, to *tally) {
	t.Helper()
	object := task(t, s)
	for i := range hanging + 1 {
		path := "/hangs"
		if i == hanging {
			path = "/refuses"
		}
		h := hook(t, s, to.URL(path))
		values, args := make([]string, 0, queued), make([]any, 0, 4*queued)
		for range queued {
			values = append(values, "(?, ?, ?, 'queued', ?, 'none', 0, UNIX_TIMESTAMP(), UNIX_TIMESTAMP())")
			args = append(args, devstack.NewPHID("HWBR"), h.PHID, object, forever)
		}
		execSQL(t, s, "INSERT INTO "+s.Database("herald")+".herald_webhookrequest"+
			" (phid, webhookPHID, objectPHID, status, properties, lastRequestResult, lastRequestEpoch, dateCreated, dateModified)"+
			" VALUES "+strings.Join(values, ","), args...)
	}
}

// latencies queues n rows for a hook, one after the other, and measures from
// each one's commit to its call.
func latencies(t *testing.T, s *scenario.Site, to *tally, h devstack.Hook, n int) []time.Duration {
	t.Helper()
	took := make([]time.Duration, n)
	for i := range took {
		object := task(t, s)
		queue(t, s, h, object, never)
		committed := time.Now()
		scenario.Until(t, patience, "the healthy hook is called", func() bool { return len(to.About(object)) == 1 })
		took[i] = to.About(object)[0].Sub(committed)
	}
	slices.Sort(took)
	return took
}

// starving is a flood beside a healthy hook whose latency was measured idle.
type starving struct {
	*scenario.Site
	to    *tally
	known devstack.Hook
	idle  []time.Duration
}

func newStarving(t *testing.T) (s *starving, serve *scenario.Process) {
	t.Helper()
	s = &starving{Site: scenario.NewSite(t, &program), to: newTally(t)}
	serve = s.Serve(t, s.settings())
	s.known = hook(t, s.Site, s.to.URL("/healthy"))
	s.idle = latencies(t, s.Site, s.to, s.known, 20)
	return s, serve
}

func (s *starving) settings() map[string]string {
	return map[string]string{"WAYBILL_HERALD_DELIVERY_TIMEOUT": flooded.String()}
}

// awaitFlood waits until every hanging hook is called.
func (s *starving) awaitFlood(t *testing.T, before int) {
	t.Helper()
	scenario.Until(t, patience, "the hanging hooks are called", func() bool { return s.to.Calls() >= before+hanging })
}

// show measures a healthy hook beside the flood, prints the ratio, and wants no
// row to wait for a hanging receiver.
func (s *starving) show(t *testing.T, what string, h devstack.Hook) {
	t.Helper()
	took := latencies(t, s.Site, s.to, h, 20)
	middle, worst, idle := took[len(took)/2], took[len(took)-1], s.idle[len(s.idle)/2]
	t.Logf("%s: median %v, worst %v; %.1f times the idle median of %v", what, middle.Round(time.Millisecond),
		worst.Round(time.Millisecond), float64(middle)/float64(idle), idle.Round(time.Millisecond))
	if worst >= flooded/2 {
		t.Errorf("%s: a healthy row waited %v; calls to hanging receivers take %v", what, worst, flooded)
	}
}

// Fifty hooks hang and one always fails, with 200 rows each. A healthy hook's
// rows arrive beside them as on an idle system: one that is known as fast, and
// one never seen before. The backlog stays rows, it does not become workflows.
func TestAFloodOfHangingHooksStarvesNobody(t *testing.T) {
	s, _ := newStarving(t)
	before := s.to.Calls()
	begun := time.Now()
	flood(t, s.Site, s.to)
	s.awaitFlood(t, before)
	s.show(t, "known as fast", s.known)
	s.show(t, "never seen before", hook(t, s.Site, s.to.URL("/healthy")))
	open := openAtOnce(t, s.Site)
	t.Logf("%d request workflows are open beside %d queued rows", open, hanging*queued)
	// For each hook the one under way and the one being fed, a sleeper for each
	// row that has failed by now, and as many again for the hook that refuses.
	if most := hanging * (3 + int(time.Since(begun)/flooded)); open > most {
		t.Errorf("%d request workflows are open, want %d at most: rows must stay rows", open, most)
	}
}

// A process that starts into the flood knows no receiver, and so takes the
// healthy one for slow at first: it shares its places with those that hang.
func TestARestartInAFloodStarvesNobody(t *testing.T) {
	s, serve := newStarving(t)
	if code := serve.Stop(t); code != 0 {
		t.Fatalf("stop ended with %d", code)
	}
	before := s.to.Calls()
	flood(t, s.Site, s.to)
	s.Serve(t, s.settings())
	s.awaitFlood(t, before)
	s.show(t, "after a restart", s.known)
	s.show(t, "never seen before", hook(t, s.Site, s.to.URL("/healthy")))
}
