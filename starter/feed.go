package starter

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"waybill/activities"
	"waybill/internal/herald"
)

// Times and sizes of one feed.
const (
	// lookahead is how many heads one read takes.
	lookahead = 32
	// notOwnedRest is how long a feed rests while nobody may send.
	notOwnedRest = 100 * time.Millisecond
	mostRest     = time.Second
	// openRest is how long a row is left alone whose workflow is still open.
	openRest = 2 * time.Second
	// untouchedRest is how long a row is left alone that cannot be processed.
	untouchedRest = 10 * time.Minute
	// troubleRest spaces tries while a database or Temporal is away.
	troubleRest = time.Second
)

// feed walks one hook's line: one attempt at a time, never-tried rows and due
// retries in turn.
type feed struct {
	starter *Starter
	hook    string
	number  int
	woken   chan struct{}
	ends    chan activities.Ended

	mu       sync.Mutex
	lookDue  bool
	restedBy map[uint64]rest

	heads, due []herald.Candidate
	dueTurn    bool
	announced  bool // the hook's workflow exists
}

// rest is why a row is not a candidate for a while: a version of it.
type rest struct {
	version int64
	until   time.Time
}

func newFeed(s *Starter, hook string, number int) *feed {
	return &feed{
		starter: s, hook: hook, number: number, lookDue: true,
		woken: make(chan struct{}, 1), ends: make(chan activities.Ended, 16), restedBy: map[uint64]rest{},
	}
}

// wake tells the feed to look at its line; thorough also at due retries.
func (f *feed) wake(thorough bool) {
	if thorough {
		f.mu.Lock()
		f.lookDue = true
		f.mu.Unlock()
	}
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

// ended hands over the end of an attempt; a full channel means that the feed is
// not waiting for any, and its own timeout covers the rest.
func (f *feed) ended(e activities.Ended) {
	select {
	case f.ends <- e:
	default:
	}
}

// run feeds the hook until ctx ends.
func (f *feed) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.woken:
		case <-f.ends:
			continue
		}
		for f.step(ctx) {
		}
	}
}

// step makes one attempt begin and waits for its end. false: there is nothing
// to do until the feed is woken.
func (f *feed) step(ctx context.Context) bool {
	if ctx.Err() != nil || f.starter.isPaused(f.hook) {
		return false
	}
	if err := f.announce(ctx); err != nil {
		return f.sleep(ctx, troubleRest)
	}
	if rest := f.inadmissible(); rest > 0 {
		return f.sleep(ctx, rest)
	}
	c, err := f.next(ctx)
	if err != nil {
		return f.sleep(ctx, troubleRest)
	}
	if c == nil {
		return false
	}
	release, err := f.starter.cfg.Owner.Reserve(ctx, f.hook)
	if err != nil {
		return false
	}
	defer release()
	return f.attempt(ctx, *c)
}

// announce makes sure that the hook's own workflow exists, once: a plain signal
// to a hook always finds its target before the hook is fed.
func (f *feed) announce(ctx context.Context) error {
	if f.announced || !f.starter.exists(f.hook) {
		return nil
	}
	err := f.starter.announce(ctx, f.hook)
	f.announced = err == nil
	return err
}

// inadmissible says how long to rest because this process may not send to the
// hook. Rows whose hook is gone need no owner: nothing can be sent for them.
func (f *feed) inadmissible() time.Duration {
	if !f.starter.exists(f.hook) {
		return 0
	}
	wait, owned := f.starter.cfg.Owner.Ready(f.hook)
	if !owned {
		return notOwnedRest
	}
	return min(wait, mostRest)
}

// attempt starts the row's workflow and waits until its attempt is over.
func (f *feed) attempt(ctx context.Context, c herald.Candidate) bool {
	f.drain()
	run, err := f.starter.start(ctx, c)
	switch {
	case err == errOpen:
		f.leave(c, openRest)
		return true
	case err != nil:
		f.heads, f.due = nil, nil
		f.starter.cfg.Log.Warn("workflow not started", zap.String("request", c.PHID), zap.Error(err))
		return f.sleep(ctx, troubleRest)
	}
	if f.starter.cfg.Watch {
		watching, stop := context.WithCancel(ctx)
		defer stop()
		go f.watch(watching, c, run)
	}
	timeout := time.NewTimer(f.starter.cfg.AttemptWithin)
	defer timeout.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timeout.C:
			f.leave(c, openRest)
			return true
		case e := <-f.ends:
			if e.PHID == c.PHID {
				return f.after(ctx, c, e)
			}
		}
	}
}

// after reads how the attempt ended: what it says about this row, and about
// the hook.
func (f *feed) after(ctx context.Context, c herald.Candidate, e activities.Ended) bool {
	switch e.State {
	case activities.Untouched:
		f.leave(c, untouchedRest)
	case activities.Leased, activities.Resting:
		f.leave(c, max(e.Wait, openRest))
	case activities.BreakerOpen:
		f.heads, f.due = nil, nil
		return f.sleep(ctx, e.Wait)
	case activities.Paused, activities.Unowned, activities.Elsewhere, activities.Busy, activities.Lost, "":
		f.heads, f.due = nil, nil
		return f.sleep(ctx, notOwnedRest)
	}
	return true
}

// drain forgets ends of attempts that nobody waits for any more.
func (f *feed) drain() {
	for {
		select {
		case <-f.ends:
		default:
			return
		}
	}
}

// sleep rests, at most d, or until the feed is woken.
func (f *feed) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	}
	return true
}

// next chooses the next row: never-tried ones and due retries in turn.
func (f *feed) next(ctx context.Context) (*herald.Candidate, error) {
	if err := f.refill(ctx); err != nil {
		return nil, err
	}
	first, second := &f.heads, &f.due
	if f.dueTurn {
		first, second = second, first
	}
	f.dueTurn = !f.dueTurn
	if c := f.pop(first); c != nil {
		return c, nil
	}
	return f.pop(second), nil
}

// refill reads the line where what was read is used up.
func (f *feed) refill(ctx context.Context) error {
	f.prune()
	if len(f.heads) == 0 {
		heads, err := f.starter.cfg.Queue.Heads(ctx, f.hook, lookahead+len(f.restedBy))
		if err != nil {
			return err
		}
		f.heads = heads
	}
	f.mu.Lock()
	look := f.lookDue && len(f.due) == 0
	f.lookDue = f.lookDue && !look
	f.mu.Unlock()
	if !look {
		return nil
	}
	due, err := f.starter.cfg.Queue.Due(ctx, f.hook, lookahead+len(f.restedBy))
	f.due = due
	return err
}

// pop takes the first row that is not resting.
func (f *feed) pop(from *[]herald.Candidate) *herald.Candidate {
	for len(*from) > 0 {
		c := (*from)[0]
		*from = (*from)[1:]
		if r, resting := f.restedBy[c.ID]; !resting || r.version != c.Modified {
			return &c
		}
	}
	return nil
}

// leave keeps a version of a row from being a candidate for a while.
func (f *feed) leave(c herald.Candidate, d time.Duration) {
	f.restedBy[c.ID] = rest{version: c.Modified, until: f.starter.cfg.Clock().Add(d)}
}

// prune forgets rests that are over.
func (f *feed) prune() {
	now := f.starter.cfg.Clock()
	for id, r := range f.restedBy {
		if now.After(r.until) {
			delete(f.restedBy, id)
		}
	}
}
