package starter

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"waybill/activities"
	"waybill/internal/herald"
)

// Rests of a feed.
const (
	// notOwnedRest is the first rest of a feed while nobody may send; it doubles
	// up to mostRest, so that thousands of waiting feeds cost nothing.
	notOwnedRest = 100 * time.Millisecond
	mostRest     = time.Second
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

	doubted atomic.Bool // whether the hook's workflow is still there

	mu      sync.Mutex
	lookDue bool
	awaited string                // the request whose attempt must end
	end     chan activities.Ended // of that attempt, room for one

	// Only run's goroutine touches what follows.
	heads, due []herald.Candidate
	dueTurn    bool
	restedBy   map[uint64]rest
	unowned    time.Duration    // the last rest while nobody may send
	announced  time.Time        // when the hook's workflow was last made sure of
	life       int64            // in which of Temporal's
	runID      string           // of the hook's workflow then
	reported   map[uint64]int64 // versions of rows that were told to be unspeakable
}

func newFeed(s *Starter, hook string, number int) *feed {
	return &feed{
		starter: s, hook: hook, number: number, lookDue: true,
		woken: make(chan struct{}, 1), restedBy: map[uint64]rest{}, reported: map[uint64]int64{},
	}
}

// wake tells the feed to look at its line; thorough also at due retries.
func (f *feed) wake(thorough bool) {
	if thorough {
		f.lookAtDue()
	}
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

func (f *feed) lookAtDue() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lookDue = true
}

// run feeds the hook until ctx ends.
func (f *feed) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.woken:
		}
		for f.step(ctx) {
		}
	}
}

// step makes one attempt begin and waits for its end. false: there is nothing
// to do until the feed is woken.
func (f *feed) step(ctx context.Context) bool {
	if !herald.Speakable(f.hook) {
		f.starter.unspeakable(f.hook)
		return false
	}
	if err := f.introduce(ctx); err != nil {
		return f.sleep(ctx, troubleRest)
	}
	if f.starter.isPaused(f.hook) {
		return false
	}
	if wait := f.inadmissible(); wait > 0 {
		return f.sleep(ctx, wait)
	}
	c, err := f.next(ctx)
	f.starter.notes.note(ctx, theQueue, err)
	if err != nil {
		return f.sleep(ctx, troubleRest)
	}
	if c == nil {
		return false
	}
	if !herald.Speakable(c.PHID) {
		f.report(*c)
		return true
	}
	wait, ok := f.reserved(ctx, *c)
	return ok && (wait == 0 || f.sleep(ctx, wait))
}

// reserved makes an attempt within the room for those of its kind, and gives
// the room back before the feed rests. It returns that rest; false: ctx ended.
func (f *feed) reserved(ctx context.Context, c herald.Candidate) (time.Duration, bool) {
	release, err := f.starter.cfg.Owner.Reserve(ctx, f.hook)
	if err != nil {
		return 0, false
	}
	defer release()
	return f.attempt(ctx, c)
}

// introduce keeps the hook's own workflow in step with the hook's row: it is
// there before the hook is fed or its pause looked at, so that a plain signal
// always finds its target, and ends when the row is gone.
func (f *feed) introduce(ctx context.Context) error {
	exists, known := f.starter.exists(f.hook), !f.announced.IsZero()
	if !exists && known {
		err := f.starter.retire(ctx, f.hook)
		if err == nil {
			f.announced, f.runID = time.Time{}, ""
		}
		return err
	}
	now, life, doubt := f.starter.cfg.Clock(), f.starter.lives.Load(), f.doubted.Swap(false)
	if !exists || (known && !doubt && f.life == life && now.Sub(f.announced) < announceEvery) {
		return nil
	}
	id, err := f.starter.announce(ctx, f.hook, !known && f.idle(ctx))
	if err != nil {
		return err
	}
	if doubt && f.runID != "" && f.runID != id {
		f.starter.anotherLife() // the others have to be made sure of too
		life = f.starter.lives.Load()
	}
	f.announced, f.life, f.runID = now, life, id
	return nil
}

// idle reports whether there is nothing to send for now. It keeps nothing of the
// line, which may be another's by the time this process may send; one that
// cannot be read is reported by who wants a row of it.
func (f *feed) idle(ctx context.Context) bool {
	_ = f.refill(ctx)
	rows := len(f.heads) + len(f.due)
	f.heads, f.due = nil, nil
	f.lookAtDue()
	return rows == 0
}

// inadmissible says how long to rest because this process may not send to the
// hook. Rows whose hook is gone need no owner: nothing can be sent for them.
func (f *feed) inadmissible() time.Duration {
	if !f.starter.exists(f.hook) {
		return 0
	}
	wait, owned := f.starter.cfg.Owner.Ready(f.hook)
	if !owned {
		return f.longer()
	}
	return min(wait, mostRest)
}

// longer is the rest while nobody may send, longer each time.
func (f *feed) longer() time.Duration {
	f.unowned = min(max(2*f.unowned, notOwnedRest), mostRest)
	return f.unowned
}

// sleep rests for d. false: ctx ended. What would wake the feed waits: it has a
// reason to rest, and looks at everything afterwards.
func (f *feed) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
