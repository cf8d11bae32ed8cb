package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// turn is whose attempt a slot admits: never-tried rows and due retries
// alternate, so that rows which always fail cannot keep the good ones waiting.
type turn int

const (
	firstTry turn = iota
	retry
)

// slot admits one attempt at a time to a hook.
type slot struct {
	// retrying holds the one retry that has room, or waits for it.
	retrying chan struct{}
	line     atomic.Int32 // retries that wait for that

	mu      sync.Mutex
	busy    bool
	last    turn
	waiting [2][]chan struct{}
}

func newSlot() *slot { return &slot{retrying: make(chan struct{}, 1)} }

// enter takes the slot, waiting at most patience. false: it stayed taken.
func (s *slot) enter(ctx context.Context, t turn, patience time.Duration) bool {
	s.mu.Lock()
	if !s.busy {
		s.busy, s.last = true, t
		s.mu.Unlock()
		return true
	}
	mine := make(chan struct{})
	s.waiting[t] = append(s.waiting[t], mine)
	s.mu.Unlock()

	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-mine:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return !s.withdraw(t, mine)
}

// withdraw leaves the queue. false: the slot was handed over in that moment.
func (s *slot) withdraw(t turn, mine chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.waiting[t] {
		if c == mine {
			s.waiting[t] = append(s.waiting[t][:i], s.waiting[t][i+1:]...)
			return true
		}
	}
	return false
}

// leave hands the slot to the next in turn, the other kind first.
func (s *slot) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range []turn{1 - s.last, s.last} {
		if q := s.waiting[t]; len(q) > 0 {
			s.waiting[t], s.last = q[1:], t
			close(q[0])
			return
		}
	}
	s.busy = false
}

// idle reports whether nobody holds the slot.
func (s *slot) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.busy
}
