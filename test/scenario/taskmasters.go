package scenario

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"
)

// roundEvery is how often a taskmaster looks for work: far more often than
// Phorge does, so that few seconds show what days do.
const roundEvery = 50 * time.Millisecond

// A taskmaster is slow at every slowTurn-th turn: it looks at a row and asks for the
// lock only after slowTurnTakes, as on a busy machine. Waybill holds a lock for
// longer than that after its last write.
const (
	slowTurn      = 8
	slowTurnTakes = 2 * time.Second
)

// Taskmasters are several of Phorge's, each trying every queued row of a load
// again and again, as Phorge does in its own time. A database that goes away
// makes their tasks fail, and they come back to them.
type Taskmasters struct {
	load  *Load
	ended sync.WaitGroup
	end   func()

	mu    sync.Mutex
	turns map[Turn]int
	saved map[string]bool // rows
	// taken are the rows that one of them is at: a task of Phorge's queue is
	// leased to one worker at a time.
	taken map[string]bool
}

// NewTaskmasters starts n of them, which work until End or the test's end.
func NewTaskmasters(t testing.TB, l *Load, n int) *Taskmasters {
	t.Helper()
	stop := make(chan struct{})
	m := &Taskmasters{load: l, turns: map[Turn]int{}, saved: map[string]bool{}, taken: map[string]bool{}}
	m.end = sync.OnceFunc(func() { close(stop); m.ended.Wait() })
	for range n {
		w, turns := NewPhorgeWorker(t, l.site.Phorge), 0
		w.Between = func() {
			if turns++; turns%slowTurn == 0 {
				pass(t, slowTurnTakes)
			}
		}
		m.ended.Go(func() { m.work(t.Context(), w, stop) })
	}
	t.Cleanup(m.end)
	return m
}

// End lets them finish what they do.
func (m *Taskmasters) End() { m.end() }

// Turns counts their turns by what each came to.
func (m *Taskmasters) Turns() map[Turn]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.turns)
}

// Saved are the rows that they have saved, or may have.
func (m *Taskmasters) Saved() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.saved)
}

// Failed is a turn that ended in an error, wherever it was.
const Failed Turn = "failed"

func (m *Taskmasters) work(ctx context.Context, w *PhorgeWorker, stop <-chan struct{}) {
	round := time.NewTicker(roundEvery)
	defer round.Stop()
	for {
		select {
		case <-stop:
			return
		case <-round.C:
		}
		found, err := m.load.find(ctx)
		if err != nil {
			continue
		}
		for phid, row := range found {
			if row.Status != queued || !m.take(phid) {
				continue
			}
			turn, err := w.Try(ctx, phid)
			if err != nil {
				turn = Failed
			}
			m.give(phid, turn)
		}
	}
}

// take leases a row to one of them. false: another one has it.
func (m *Taskmasters) take(phid string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken[phid] {
		return false
	}
	m.taken[phid] = true
	return true
}

func (m *Taskmasters) give(phid string, turn Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.taken, phid)
	m.turns[turn]++
	if turn == Called || turn == Failed {
		m.saved[phid] = true
	}
}
