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

// watching watches until the returned function is called.
func (f *feed) watching(ctx context.Context, c herald.Candidate, run client.WorkflowRun) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { f.watch(ctx, c, run) })
	return func() { cancel(); watching.Wait() }
}

// watch looks for the end of an attempt in another process: its workflow
// completes, or, for a row that will be tried again, its result stands in the
// table. It returns when it has found one or ctx ends.
func (f *feed) watch(ctx context.Context, c herald.Candidate, run client.WorkflowRun) {
	ctx, cancel := context.WithCancel(ctx)
	completed := make(chan workflows.RequestResult, 1)
	var getting sync.WaitGroup
	defer getting.Wait()
	defer cancel()
	getting.Go(func() {
		var res workflows.RequestResult
		if run.Get(ctx, &res) == nil {
			completed <- res
		}
	})
	ref := activities.Ref{ID: c.ID, PHID: c.PHID, HookPHID: c.HookPHID}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case res := <-completed:
			f.ended(activities.Ended{Ref: ref, State: res.State, Wait: res.Wait})
			return
		case <-tick.C:
			same, err := f.starter.cfg.Queue.Unchanged(ctx, c)
			if err == nil && !same {
				f.ended(activities.Ended{Ref: ref, State: activities.Won})
				return
			}
		}
	}
}
