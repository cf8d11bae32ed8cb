package faults

import (
	"fmt"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// nothingOpen: no request's workflow is open when every row is at its end.
func (w *world) nothingOpen() {
	var open []string
	scenario.Until(w.t, settleWithin, func() string { return fmt.Sprintf("no request's workflow is open; %v are", open) }, func() bool {
		open = w.OpenRequests(w.t)
		return len(open) == 0
	})
}

// grown is how many goroutines a process may have more than a fresh one of its
// kind: pollers and connections that come and go.
const grown = 60

// goroutines are those of a fresh process, by kind: the most of them.
func (w *world) goroutines() map[string]int {
	fresh := map[string]int{}
	for _, m := range w.fleet.Running() {
		fresh[m.Kind()] = max(fresh[m.Kind()], goroutines(w, m))
	}
	return fresh
}

// nothingGrown: no process has kept goroutines of what is over.
func (w *world) nothingGrown(fresh map[string]int) {
	w.fleet.AwaitReady(w.t)
	for _, m := range w.fleet.Running() {
		n := 0
		scenario.Until(w.t, scenario.Patience, func() string {
			return fmt.Sprintf("%s is at rest: it has %d goroutines, a fresh one has %d", m.Name(), n, fresh[m.Kind()])
		}, func() bool { n = goroutines(w, m); return n > 0 && n <= fresh[m.Kind()]+grown })
	}
}

var goroutinesLine = regexp.MustCompile(`(?m)^go_goroutines(?:\{[^}]*\})? (\d+)`)

// goroutines reads a process's metric, 0 when it is not there.
func goroutines(w *world, m *scenario.Member) int {
	found := goroutinesLine.FindStringSubmatch(m.Process().Get(w.t, "/metrics", "").Body)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

// countsAgree: both API processes count what stands in the rows.
func (w *world) countsAgree() {
	n := map[string]int{}
	for _, r := range w.load.Found(w.t) {
		n[r.Status]++
	}
	want := fmt.Sprintf(`{"data":{"activeWebhooks":%d,"failedCount":%d,"queuedCount":%d,"sentCount":%d}}`+"\n",
		len(w.hooks()), n["failed"], n["queued"], n["sent"])
	for _, m := range w.fleet.Running() {
		if m.Kind() != "api" {
			continue
		}
		got := ""
		scenario.Until(w.t, scenario.Patience, func() string { return fmt.Sprintf("%s counts %s; it says %s", m.Name(), want, got) },
			func() bool { got = m.Process().Get(w.t, "/api/webhook/stats", "").Body; return got == want })
	}
}

// stop ends all processes in order. Nothing of theirs is left then: no
// connection, no lock, no owner's record that is not released.
func (w *world) stop() {
	running := w.fleet.Running()
	for _, m := range running {
		m.Process().Signal(syscall.SIGTERM)
	}
	for _, m := range running {
		if code := m.Process().Wait(w.t, stopWithin); code != 0 {
			w.t.Errorf("%s ended with %d", m.Name(), code)
		}
	}
	var left []string
	scenario.Until(w.t, scenario.Patience, func() string { return fmt.Sprintf("nothing is left over; there is %v", left) },
		func() bool { left = w.left(); return len(left) == 0 })
}

// stopWithin bounds an orderly stop: a call, its write, the 5 s that locks are
// held, and a busy machine.
const stopWithin = 90 * time.Second

// left is what the processes have left behind in the database.
func (w *world) left() (left []string) {
	count := func(what, query string, arguments ...any) {
		var n int
		if err := w.DB.QueryRowContext(w.t.Context(), query, arguments...).Scan(&n); err != nil {
			left = append(left, err.Error())
		} else if n > 0 {
			left = append(left, fmt.Sprint(n, " ", what))
		}
	}
	for _, database := range append([]string{w.Ledger}, w.databases()...) {
		count("connections to "+database, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = ?", database)
	}
	for _, h := range w.hooks() {
		count("locks of "+h.Name, "SELECT NOT IS_FREE_LOCK(?)", scenario.LockName(w.Namespace, h.PHID))
	}
	count("unreleased owner records", "SELECT COUNT(*) FROM "+w.Ledger+".hook_owner WHERE released_at IS NULL")
	count("sessions", "SELECT COUNT(*) FROM "+w.Ledger+".worker_session")
	return left
}

func (w *world) databases() (names []string) {
	for _, suffix := range devstack.PhorgeDatabases() {
		names = append(names, w.Database(suffix))
	}
	return names
}
