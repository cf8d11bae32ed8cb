package starter

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/workflows"
)

// watchEvery is how often a started row is looked at for the end of its attempt.
const watchEvery = 200 * time.Millisecond

// watch looks for the end of an attempt in another process: its workflow
// completes, or, for a row that will be tried again, its result stands in the
// table.
func (f *feed) watch(ctx context.Context, c herald.Candidate, run client.WorkflowRun) {
	completed := make(chan workflows.RequestResult, 1)
	go func() {
		var res workflows.RequestResult
		if run.Get(ctx, &res) == nil {
			completed <- res
		}
	}()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case res := <-completed:
			f.ended(activities.Ended{Ref: activities.Ref{PHID: c.PHID}, State: res.State})
			return
		case <-tick.C:
			same, err := f.starter.cfg.Queue.Unchanged(ctx, c)
			if err == nil && !same {
				f.ended(activities.Ended{Ref: activities.Ref{PHID: c.PHID}, State: activities.Won})
				return
			}
		}
	}
}

// Elsewhere is the ownership that a starter without a worker sees: hooks with a
// live owner somewhere. Its room bounds what this starter has begun.
type Elsewhere struct {
	room  chan struct{}
	owned func(ctx context.Context) ([]string, error)

	mu     sync.Mutex
	owners map[string]bool
}

// NewElsewhere reads owners through owned; room is the most attempts begun.
func NewElsewhere(owned func(ctx context.Context) ([]string, error), room int) *Elsewhere {
	return &Elsewhere{owned: owned, room: make(chan struct{}, room)}
}

// Run keeps the owners current until ctx ends.
func (e *Elsewhere) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
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
func (e *Elsewhere) Reserve(ctx context.Context, _ string) (func(), error) {
	select {
	case e.room <- struct{}{}:
		return func() { <-e.room }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Wake has nobody to tell: owners look by themselves.
func (e *Elsewhere) Wake() {}
