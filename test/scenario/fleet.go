package scenario

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// Fault is something that was done to a process, or around it, and that may
// leave the outcome of its calls unknown.
type Fault struct {
	Kind string // the signal
	Who  string
	// PID is the process it concerns, 0 for every one.
	PID int
	// From and To are when it began and when it was over.
	From, To time.Time
}

// Fleet is several processes of one site. Its methods may be called from any
// goroutine, those for one member from one at a time.
type Fleet struct {
	site     *Site
	settings map[string]string
	now      func() time.Time

	mu      sync.Mutex
	members []*Member
	faults  []Fault
}

// Member is one place in a fleet: a process, and those that were there before.
type Member struct {
	fleet *Fleet
	name  string
	kind  string
	runs  []*Process // the last one is the present one
}

// NewFleet makes an empty fleet, whose processes get the site's environment
// with changes.
func NewFleet(s *Site, changes map[string]string, now func() time.Time) *Fleet {
	return &Fleet{site: s, settings: changes, now: now}
}

// Launch starts n processes of a kind (serve, worker, starter) at once and
// does not wait for them.
func (f *Fleet) Launch(t testing.TB, n int, kind string) []*Member {
	t.Helper()
	var launched []*Member
	for range n {
		f.mu.Lock()
		m := &Member{fleet: f, kind: kind, name: fmt.Sprintf("%s-%d", kind, len(f.members)+1)}
		f.members = append(f.members, m)
		f.mu.Unlock()
		m.Restart(t)
		launched = append(launched, m)
	}
	return launched
}

// AwaitReady waits for all that run.
func (f *Fleet) AwaitReady(t testing.TB) {
	t.Helper()
	for _, m := range f.Running() {
		m.Process().AwaitReady(t)
	}
}

// Running are the members whose process has not ended.
func (f *Fleet) Running() []*Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	ended := func(m *Member) bool { return len(m.runs) == 0 || m.runs[len(m.runs)-1].Exited() }
	return slices.DeleteFunc(slices.Clone(f.members), ended)
}

// Any is one of those that run, by chance.
func (f *Fleet) Any(t testing.TB, chance *rand.Rand) *Member {
	t.Helper()
	running := f.Running()
	if len(running) == 0 {
		t.Fatal("scenario: nothing of the fleet runs")
	}
	return running[chance.IntN(len(running))]
}

// PIDs are the processes that have not ended.
func (f *Fleet) PIDs() []int {
	var all []int
	for _, m := range f.Running() {
		all = append(all, m.Process().PID())
	}
	return all
}

// Processes are all there have been.
func (f *Fleet) Processes() []*Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*Process
	for _, m := range f.members {
		all = append(all, m.runs...)
	}
	return all
}

// Faults are what has been done to it so far.
func (f *Fleet) Faults() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.faults)
}

func (f *Fleet) note(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fault)
}

// Name is the member's kind and number.
func (m *Member) Name() string { return m.name }

// Process is the present one.
func (m *Member) Process() *Process {
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	return m.runs[len(m.runs)-1]
}

// Restart starts the member's next process and does not wait for it.
func (m *Member) Restart(t testing.TB) {
	t.Helper()
	p := m.fleet.site.Run(t, m.fleet.settings, m.kind)
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	m.runs = append(m.runs, p)
}

// Stop asks the process to end, waits, and returns the exit code.
func (m *Member) Stop(t testing.TB) int {
	t.Helper()
	return m.Process().Stop(t)
}

// Kill ends the present process like a crash and notes it as a fault.
func (m *Member) Kill() {
	p := m.Process()
	fault := Fault{Kind: "SIGKILL", Who: m.name, PID: p.PID(), From: m.fleet.now()}
	p.Kill()
	fault.To = m.fleet.now()
	m.fleet.note(fault)
}
