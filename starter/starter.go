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
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

// Times and sizes of looking for work.
const (
	// pollLimit bounds one poll; more is taken by the next, at once.
	pollLimit = 1000
	// sweepEvery is one step of the sweep; every hook is looked at within
	// sweepSteps of them, whatever happened to its notifications.
	sweepEvery = time.Second
	sweepSteps = 15
	// recentIDs below the watermark are read again: rows whose transaction
	// committed after a later id had been seen. Most sweep steps read only the
	// ids given out within the last lateSteps of them, every lateSteps-th reads
	// them all, for transactions that were open longer: on a quiet system
	// reading 5,000 rows each second was half of all it did.
	recentIDs = 5000
	lateSteps = 60
	// orphanEvery is how often hooks are looked for that have rows but no row
	// of their own.
	orphanEvery = 30 * time.Second
	// registerEvery is how often a server that does not know the search
	// attributes is asked to.
	registerEvery = 30 * time.Second
	// pausesEvery is how often the pause table is read for the feeds.
	pausesEvery = 500 * time.Millisecond
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
	whole
}

// whole is what is asked across hooks, or about one row.
type whole interface {
	// Waiting lists the hooks that rows refer to.
	Waiting(ctx context.Context) ([]string, error)
	// Unchanged tells whether a row has no result since it was read.
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

// Config is what a Starter needs; every field but Register and Watch is required.
type Config struct {
	Queue    queue
	Owner    owner
	Pauses   pauses
	Hooks    func(ctx context.Context) ([]string, error)
	Temporal cluster
	// Attributes says that the server knows Waybill's search attributes.
	Attributes bool
	// Register makes it know them. It is called when the server turns out not
	// to, now and then until it works; rows are started without them meanwhile.
	Register func(ctx context.Context) error
	// TaskQueue is where the installation's workflow tasks go.
	TaskQueue string
	// Poll is how often new rows are looked for.
	Poll time.Duration
	// AttemptWithin is when an attempt that was not heard of again is given up
	// on by its feed: a lease, after which the row is a candidate again. An end
	// is not heard of when it happened in another process.
	AttemptWithin time.Duration
	// Watch says whether the attempts to a hook end in other processes, so that
	// their ends must be looked for; nil: none do.
	Watch func(hookPHID string) bool
	// Tracer makes a span for each candidate; nil: none.
	Tracer trace.Tracer
	Log    *zap.Logger
	Clock  func() time.Time
}

// Starter feeds every hook from the head of its line.
type Starter struct {
	cfg        Config
	notes      notes
	attributes atomic.Bool
	// lives counts how often Temporal came back; it may be another one then.
	lives atomic.Int64
	// announcing bounds how many hooks are announced at once, idling how many of
	// those have nothing to send.
	announcing, idling chan struct{}

	// Only Run's goroutine touches what follows.
	watermark uint64
	recent    []uint64 // ids that the sweep has seen, ascending
	marks     []uint64 // the watermark at each of the last sweep steps
	sinceAll  int      // sweep steps since all recent ids were read
	listed    []string // the hooks of the last list
	life      int64    // of Temporal, in which all feeds have been woken
	counted   int64    // workflows of hooks in the last census
	acted     int64    // the short number that was acted on, -1 for none

	mu     sync.Mutex
	feeds  map[string]*feed
	known  map[string]bool // hooks that have a row of their own
	paused map[string]bool
	told   map[string]bool // hooks that were reported
	// lifeBegan is when all hooks were last to be made sure of, lifeDue says that
	// they are to be once more.
	lifeBegan time.Time
	lifeDue   bool
	group     sync.WaitGroup
}

// New makes a Starter.
func New(cfg Config) *Starter {
	if cfg.Tracer == nil {
		cfg.Tracer = noop.NewTracerProvider().Tracer("")
	}
	s := &Starter{
		cfg: cfg, notes: notes{log: cfg.Log, bad: map[string]bool{}},
		acted: -1, counted: -1,
		announcing: make(chan struct{}, announceAtOnce), idling: make(chan struct{}, announceIdle),
		feeds: map[string]*feed{}, known: map[string]bool{}, paused: map[string]bool{}, told: map[string]bool{},
	}
	s.attributes.Store(cfg.Attributes)
	return s
}

// Run looks for work until ctx ends, and returns when every feed has.
func (s *Starter) Run(ctx context.Context) {
	defer s.group.Wait()
	if !s.begin(ctx) {
		return
	}
	poll := time.NewTicker(s.cfg.Poll)
	defer poll.Stop()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	pauses := time.NewTicker(pausesEvery)
	defer pauses.Stop()
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

// begin sets the watermark and looks at everything once. false: ctx ended.
func (s *Starter) begin(ctx context.Context) bool {
	for {
		newest, err := s.cfg.Queue.Newest(ctx)
		s.notes.note(ctx, theQueue, err)
		if err == nil {
			s.watermark = newest
			break
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(s.cfg.Poll):
		}
	}
	s.readPauses(ctx)
	if s.matchHooks(ctx) {
		s.orphans(ctx)
	}
	return true
}

// poll reads what is above the watermark and wakes the hooks concerned.
func (s *Starter) poll(ctx context.Context) {
	for ctx.Err() == nil {
		arrivals, err := s.cfg.Queue.Since(ctx, s.watermark, pollLimit)
		s.notes.note(ctx, theQueue, err)
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

// arrived wakes the hooks of new rows. A hook that is not known yet was made a
// moment ago; one that is not in the table either is left to the orphans' look.
func (s *Starter) arrived(ctx context.Context, arrivals []heralddb.Arrival) {
	hooks := map[string]bool{}
	for _, a := range arrivals {
		hooks[a.HookPHID] = true
	}
	matched := false
	for h := range hooks {
		if !s.exists(h) && !matched {
			matched = true
			s.matchHooks(ctx)
		}
		if s.exists(h) {
			s.feed(ctx, h).wake(false)
		}
	}
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

// Ended tells a hook's feed that an attempt is over.
func (s *Starter) Ended(e activities.Ended) {
	s.mu.Lock()
	f := s.feeds[e.HookPHID]
	s.mu.Unlock()
	if f != nil {
		f.ended(e)
	}
}
