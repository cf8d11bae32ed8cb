// Package starter finds work by itself: it watches Phorge's queue, and for each
// hook that this process owns it starts one request workflow after the other,
// the next as soon as an attempt is over. The backlog stays in MySQL; what is
// started is only the head of each hook's line.
//
// An idle poll reads nothing but rows above a watermark. Everything that a
// watermark can miss (late commits, rows due again, rows of a lost Temporal) is
// found by sweeps. It never sends and never writes to Phorge's tables.
package starter

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/internal/ledger"
)

// Times and sizes of looking for work.
const (
	// pollLimit bounds one poll; more is taken by the next, at once.
	pollLimit = 1000
	// sweepEvery is one step of the sweep; every hook is looked at within
	// sweepSteps of them, whatever happened to its notifications.
	sweepEvery = time.Second
	sweepSteps = 15
	// recentIDs are read again in each sweep step: rows whose transaction
	// committed after a later id had been seen.
	recentIDs = 5000
	// orphanEvery is how often hooks are looked for that have rows but no row
	// of their own.
	orphanEvery = 30 * time.Second
	// pausesEvery is how often the pause table is read for the feeds.
	pausesEvery = 500 * time.Millisecond
	// allHooks is the pause table's word for every hook.
	allHooks = ledger.AllHooks
)

// queue is Phorge's request table, read for work.
type queue interface {
	Newest(ctx context.Context) (uint64, error)
	Since(ctx context.Context, watermark uint64, limit int) ([]heralddb.Arrival, error)
	line
}

// line is one hook's part of the table.
type line interface {
	Heads(ctx context.Context, hookPHID string, limit int) ([]herald.Candidate, error)
	Due(ctx context.Context, hookPHID string, limit int) ([]herald.Candidate, error)
	Waiting(ctx context.Context) ([]string, error)
	seen
}

// seen tells whether a row has been worked on since it was read.
type seen interface {
	Unchanged(ctx context.Context, c herald.Candidate) (bool, error)
}

// owner is this process's ownership of hooks.
type owner interface {
	Ready(hookPHID string) (wait time.Duration, owned bool)
	Reserve(ctx context.Context, hookPHID string) (release func(), err error)
	Wake()
}

// pauses is the pause table.
type pauses interface {
	Pauses(ctx context.Context) ([]herald.Pause, error)
}

// Config is what a Starter needs; every field is required.
type Config struct {
	Queue    queue
	Owner    owner
	Pauses   pauses
	Hooks    func(ctx context.Context) ([]string, error)
	Temporal client.Client
	// Attributes says that the server knows Waybill's search attributes.
	Attributes bool
	// Poll is how often new rows are looked for.
	Poll time.Duration
	// AttemptWithin is when an attempt that was not heard of again is given up
	// on by its feed: a lease, after which the row is a candidate again.
	AttemptWithin time.Duration
	// Watch says that attempts end in other processes, so that their ends must
	// be looked for.
	Watch bool
	Log   *zap.Logger
	Clock func() time.Time
}

// Starter feeds every hook from the head of its line.
type Starter struct {
	cfg       Config
	watermark uint64

	mu     sync.Mutex
	feeds  map[string]*feed
	known  map[string]bool // hooks that have a row of their own
	paused map[string]bool
	group  sync.WaitGroup
}

// New makes a Starter.
func New(cfg Config) *Starter {
	return &Starter{cfg: cfg, feeds: map[string]*feed{}, known: map[string]bool{}, paused: map[string]bool{}}
}

// Run looks for work until ctx ends, and returns when every feed has.
func (s *Starter) Run(ctx context.Context) {
	defer s.group.Wait()
	poll := time.NewTicker(s.cfg.Poll)
	defer poll.Stop()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	pauses := time.NewTicker(pausesEvery)
	defer pauses.Stop()
	s.begin(ctx)
	for step := 1; ; {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			s.poll(ctx)
		case <-pauses.C:
			s.readPauses(ctx)
		case <-sweep.C:
			s.sweep(ctx, step)
			step++
		}
	}
}

// begin sets the watermark and looks at everything once.
func (s *Starter) begin(ctx context.Context) {
	for {
		newest, err := s.cfg.Queue.Newest(ctx)
		if err == nil {
			s.watermark = newest
			break
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.cfg.Poll):
		}
	}
	s.readPauses(ctx)
	s.matchHooks(ctx)
	s.orphans(ctx)
}

// poll reads what is above the watermark and wakes the hooks concerned.
func (s *Starter) poll(ctx context.Context) {
	for {
		arrivals, err := s.cfg.Queue.Since(ctx, s.watermark, pollLimit)
		if err != nil || len(arrivals) == 0 {
			return
		}
		s.watermark = arrivals[len(arrivals)-1].ID
		s.arrived(ctx, arrivals)
		if len(arrivals) < pollLimit {
			return
		}
	}
}

func (s *Starter) arrived(ctx context.Context, arrivals []heralddb.Arrival) {
	woken := map[string]bool{}
	for _, a := range arrivals {
		if !woken[a.HookPHID] {
			woken[a.HookPHID] = true
			s.feed(ctx, a.HookPHID).wake(false)
		}
	}
}

// sweep looks again at recent rows and at a share of the hooks.
func (s *Starter) sweep(ctx context.Context, step int) {
	s.matchHooks(ctx)
	if low := s.watermark - min(s.watermark, recentIDs); low < s.watermark {
		if recent, err := s.cfg.Queue.Since(ctx, low, recentIDs); err == nil {
			s.arrived(ctx, recent)
		}
	}
	s.mu.Lock()
	var share []*feed
	for _, f := range s.feeds {
		if f.number%sweepSteps == step%sweepSteps {
			share = append(share, f)
		}
	}
	s.mu.Unlock()
	for _, f := range share {
		f.wake(true)
	}
	if step%int(orphanEvery/sweepEvery) == 0 {
		s.orphans(ctx)
	}
}

// matchHooks starts feeds for new hooks and ends those of hooks that are gone.
func (s *Starter) matchHooks(ctx context.Context) {
	hooks, err := s.cfg.Hooks(ctx)
	if err != nil {
		return
	}
	known := make(map[string]bool, len(hooks))
	for _, h := range hooks {
		known[h] = true
	}
	s.mu.Lock()
	before := s.known
	s.known = known
	s.mu.Unlock()
	for h := range before {
		if !known[h] {
			s.retire(ctx, h)
		}
	}
	for h := range known {
		if !before[h] {
			s.cfg.Owner.Wake()
			s.feed(ctx, h).wake(true)
		}
	}
}

// orphans wakes feeds for rows whose hook has no row: their workflows say so.
func (s *Starter) orphans(ctx context.Context) {
	waiting, err := s.cfg.Queue.Waiting(ctx)
	if err != nil {
		return
	}
	for _, h := range waiting {
		if !s.exists(h) {
			s.feed(ctx, h).wake(true)
		}
	}
}

func (s *Starter) exists(hook string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[hook]
}

// readPauses keeps feeds from starting what admission would refuse, and wakes
// hooks that may continue.
func (s *Starter) readPauses(ctx context.Context) {
	all, err := s.cfg.Pauses.Pauses(ctx)
	if err != nil {
		return
	}
	paused := make(map[string]bool, len(all))
	for _, p := range all {
		paused[p.HookPHID] = true
	}
	s.mu.Lock()
	before := s.paused
	s.paused = paused
	var resumed []*feed
	for h, f := range s.feeds {
		was, is := before[h] || before[allHooks], paused[h] || paused[allHooks]
		if was && !is {
			resumed = append(resumed, f)
		}
	}
	s.mu.Unlock()
	for _, f := range resumed {
		f.wake(true)
	}
}

func (s *Starter) isPaused(hook string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused[hook] || s.paused[allHooks]
}

// feed returns a hook's feed, starting it if there is none.
func (s *Starter) feed(ctx context.Context, hook string) *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feeds[hook]
	if f == nil {
		f = newFeed(s, hook, len(s.feeds))
		s.feeds[hook] = f
		s.group.Go(func() { f.run(ctx) })
	}
	return f
}

// Ended tells a feed that an attempt is over. Attempts that the feed did not
// start (retries) concern it only for what they say about the hook.
func (s *Starter) Ended(e activities.Ended) {
	s.mu.Lock()
	f := s.feeds[e.HookPHID]
	s.mu.Unlock()
	if f != nil {
		f.ended(e)
	}
}
