package starter

import (
	"context"
	"errors"
	"time"

	"waybill/activities"
	"waybill/internal/herald"
)

// Rests after an attempt.
const (
	// openRest is how long a row is left alone whose workflow is still open.
	openRest = 2 * time.Second
	// untouchedRest is how long a row is left alone that cannot be processed.
	untouchedRest = 10 * time.Minute
	// breakerLook is the longest rest while a breaker is open. Its time is known,
	// but others may change the rows that it is read from, or disable the hook,
	// which fails its rows at once; a look costs one short workflow.
	breakerLook = time.Minute
)

// await names the request whose attempt must end, before it begins: the end may
// be quicker than the answer to its start.
func (f *feed) await(phid string) <-chan activities.Ended {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.awaited, f.end = phid, make(chan activities.Ended, 1)
	return f.end
}

// ended hands over the end of the attempt that is waited for. All others, of
// retries that came by themselves, concern nobody here.
func (f *feed) ended(e activities.Ended) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.awaited == e.PHID && e.PHID != "" {
		f.awaited = ""
		f.end <- e
	}
}

// attempt starts the row's workflow and waits until its attempt is over. It
// returns how long the feed should rest; false: ctx ended.
func (f *feed) attempt(ctx context.Context, c herald.Candidate) (time.Duration, bool) {
	end, watched := f.await(c.PHID), f.starter.cfg.Watch != nil && f.starter.cfg.Watch(f.hook)
	run, err := f.starter.start(ctx, c)
	switch {
	case errors.Is(err, errOpen) && watched && !c.Retry:
		// Another starter's: the hook is busy, and its next row would be in vain.
		f.reread(c)
		return openRest, true
	case errors.Is(err, errOpen):
		f.leave(c, openRest)
		return 0, true
	case err != nil:
		f.reread(c)
		return troubleRest, true
	}
	if watched {
		defer f.watching(ctx, c, run)()
	}
	timeout := time.NewTimer(f.starter.cfg.AttemptWithin)
	defer timeout.Stop()
	select {
	case <-ctx.Done():
		return 0, false
	case <-timeout.C:
		f.leave(c, openRest)
		return 0, true
	case e := <-end:
		return f.after(c, e), true
	}
}

// after reads how the attempt ended: what it says about this row, and about
// the hook. It returns how long the feed should rest.
func (f *feed) after(c herald.Candidate, e activities.Ended) time.Duration {
	switch e.State {
	case activities.Won, activities.Finished, activities.Misconfigured, activities.Collected:
		f.unowned = 0
		return 0
	case activities.Untouched:
		f.leave(c, untouchedRest)
		return 0
	case activities.Leased, activities.Resting:
		f.leave(c, max(e.Wait, openRest))
		return 0
	case activities.BreakerOpen:
		f.reread(c)
		return min(max(e.Wait, mostRest), breakerLook)
	case activities.Paused:
		f.reread(c)
		return pausesEvery // until the feeds' own look at the pause table
	case activities.Unowned, activities.Elsewhere, activities.Busy, activities.Lost:
		f.reread(c)
		return f.longer()
	default: // a database could not be asked
		f.reread(c)
		return troubleRest
	}
}
