package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// checkWithin bounds one look at a dependency.
const checkWithin = 2 * time.Second

// check looks at one dependency of running work.
type check struct {
	// problem is a fixed sentence: it is shown to strangers.
	problem string
	look    func(context.Context) error
}

// health collects what stands between this process and its work.
type health struct {
	mu       sync.Mutex
	problems []string
	checks   []check
}

// starting is a problem until somebody says that it is not: a process that has
// checked nothing yet has not found everything in order.
const starting = "Waybill is starting"

// stopping is a problem from the first signal on.
const stopping = "Waybill is stopping"

func newHealth() *health { return &health{problems: []string{starting}} }

// trouble notes a problem of coming up.
func (h *health) trouble(problem string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.problems, problem) {
		h.problems = append(h.problems, problem)
	}
}

// solved removes it.
func (h *health) solved(problem string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems = slices.DeleteFunc(h.problems, func(p string) bool { return p == problem })
}

// watch adds checks that readiness makes from now on.
func (h *health) watch(checks ...check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(h.checks, checks...)
}

// ready looks at everything, at once: one dependency that hangs does not hide
// what is wrong with another.
func (h *health) ready(ctx context.Context) (bool, []string) {
	h.mu.Lock()
	reasons := slices.Clone(h.problems)
	checks := slices.Clone(h.checks)
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	broken := make([]bool, len(checks))
	var group sync.WaitGroup
	for i, c := range checks {
		group.Go(func() { broken[i] = c.look(ctx) != nil })
	}
	group.Wait()
	for i, c := range checks {
		if broken[i] {
			reasons = append(reasons, c.problem)
		}
	}
	return len(reasons) == 0, reasons
}
