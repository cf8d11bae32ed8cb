package scenario

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Fleet is several processes of one site. Its methods may be called from any
// goroutine, those for one member from one at a time.
type Fleet struct {
	site     *Site
	settings map[string]string
	now      func() time.Time
	// Program is what members run that start from now on; the site's when empty.
	Program string
	// Dress, when set, says what a member gets of its own beside the settings, by
	// its name.
	Dress func(name string) map[string]string

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

// Note adds one that somebody else has made.
func (f *Fleet) Note(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fault)
}

// Kind is what kind of process it is: serve, worker, starter or api.
func (m *Member) Kind() string { return m.kind }

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
	settings := maps.Clone(m.fleet.settings)
	if m.fleet.Dress != nil {
		maps.Copy(settings, m.fleet.Dress(m.name))
	}
	program := m.fleet.Program
	if program == "" {
		program = m.fleet.site.binary
	}
	p := Start(t, program, m.fleet.site.With(settings), m.kind)
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	m.runs = append(m.runs, p)
}

// Stop asks the process to end, waits, and returns the exit code.
func (m *Member) Stop(t testing.TB) int {
	t.Helper()
	return m.Process().Stop(t)
}

// Still stops the present process until the answer is called, which notes it as
// a fault.
func (m *Member) Still() (goOn func()) {
	p := m.Process()
	fault := Fault{Kind: Stopped, Who: m.name, PID: p.PID(), From: m.fleet.now()}
	p.Signal(syscall.SIGSTOP)
	return func() {
		p.Signal(syscall.SIGCONT)
		fault.To = m.fleet.now()
		m.fleet.Note(fault)
	}
}

// Kill ends the present process like a crash and notes it as a fault.
func (m *Member) Kill() {
	p := m.Process()
	fault := Fault{Kind: Killed, Who: m.name, PID: p.PID(), From: m.fleet.now()}
	p.Kill()
	fault.To = m.fleet.now()
	m.fleet.Note(fault)
}
