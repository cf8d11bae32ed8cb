package starter

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// ownersEvery is how often the owners of hooks are read.
	ownersEvery = time.Second
	// quickWithin tells hooks whose attempts are over soon from all others.
	quickWithin = time.Second
	// quickShare is the part of the room that only they may use.
	quickShare = 4
)

// Elsewhere is the ownership that a starter without a worker sees: hooks with a
// live owner somewhere. Its room bounds what this starter has begun; a quarter
// of it is for hooks that have been quick, so that hanging receivers do not keep
// the others' rows from being started.
type Elsewhere struct {
	room, quick chan struct{}
	owned       func(ctx context.Context) ([]string, error)

	mu     sync.Mutex
	owners map[string]bool
	fast   map[string]bool
}

// NewElsewhere reads owners through owned; room is the most attempts begun.
func NewElsewhere(owned func(ctx context.Context) ([]string, error), room int) *Elsewhere {
	quick := room / quickShare
	return &Elsewhere{
		owned: owned, room: make(chan struct{}, room-quick), quick: make(chan struct{}, quick), fast: map[string]bool{},
	}
}

// Run keeps the owners current until ctx ends.
func (e *Elsewhere) Run(ctx context.Context) {
	tick := time.NewTicker(ownersEvery)
	defer tick.Stop()
	for {
		if hooks, err := e.owned(ctx); err == nil {
			owners := make(map[string]bool, len(hooks))
			for _, h := range hooks {
				owners[h] = true
			}
			e.mu.Lock()
			e.owners = owners
			e.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Ready reports whether somebody owns the hook; its owner knows the rest.
func (e *Elsewhere) Ready(hookPHID string) (time.Duration, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return 0, e.owners[hookPHID]
}

// Reserve waits for room.
func (e *Elsewhere) Reserve(ctx context.Context, hookPHID string) (func(), error) {
	select {
	case e.room <- struct{}{}:
		return e.hold(hookPHID, e.room), nil
	case e.quickRoom(hookPHID) <- struct{}{}:
		return e.hold(hookPHID, e.quick), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// quickRoom is nil, which never lets anybody in, for hooks not known as quick.
func (e *Elsewhere) quickRoom(hookPHID string) chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fast[hookPHID] {
		return e.quick
	}
	return nil
}

// hold gives room back when it is called, and remembers whether that was soon.
func (e *Elsewhere) hold(hookPHID string, room chan struct{}) func() {
	var late atomic.Bool
	timer := time.AfterFunc(quickWithin, func() { late.Store(true) })
	return sync.OnceFunc(func() {
		timer.Stop()
		e.mu.Lock()
		e.fast[hookPHID] = !late.Load()
		e.mu.Unlock()
		<-room
	})
}

// Wake has nobody to tell: owners look by themselves.
func (e *Elsewhere) Wake() {}

// Watched says that all attempts end in other processes.
func (e *Elsewhere) Watched(string) bool { return true }
