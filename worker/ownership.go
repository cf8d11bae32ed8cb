package worker

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/internal/ledger"
)

// Times of ownership.
const (
	// holdAfter is how long a lock is kept after the last write: Phorge checks
	// "queued" before it asks for the lock, and not again (design, crash rules).
	holdAfter = 5 * time.Second
	// pingEvery keeps the lock session alive; validFor is how long one answer
	// counts, well before the server could have dropped the session.
	pingEvery = time.Second
	validFor  = heralddb.SessionTimeout - 3*time.Second
	// patience is how long an attempt waits for its hook's slot.
	patience = 3 * time.Second
	// fastWithin tells receivers that answer fast from all others.
	fastWithin = 500 * time.Millisecond
)

// records is where owners are written down, for the next owner to read.
type records interface {
	Acquired(ctx context.Context, o ledger.Owner) (clean bool, err error)
	Released(ctx context.Context, o ledger.Owner) error
	OwnerOf(ctx context.Context, hookPHID string) (*ledger.Owner, error)
}

// OwnershipConfig is what owning hooks needs; every field but Ended is required.
type OwnershipConfig struct {
	// LockDSN is the server where Phorge's locks live; SameServer says that the
	// herald database is there too, so that claims can check the lock.
	LockDSN    string
	SameServer bool
	Namespace  string
	// Instance names this run of the process, Queue is its own task queue.
	Instance, Queue string
	Lease           time.Duration
	// MaxInFlight bounds attempts to receivers that answer fast, MaxSlow those
	// to slow and unknown ones.
	MaxInFlight, MaxSlow int
	Hooks                func(ctx context.Context) ([]string, error)
	Records              records
	Ended                func(activities.Ended)
	Log                  *zap.Logger
	Clock                func() time.Time
}

// Ownership holds the locks of hooks on one session, as Phorge's own worker
// does for the length of a call: whoever has a hook's lock is the only one to
// call it. It admits one attempt at a time to a hook, and loses all hooks at
// once with the session.
type Ownership struct {
	cfg  OwnershipConfig
	fast *semaphore.Weighted
	slow *semaphore.Weighted
	wake chan struct{}

	mu       sync.Mutex
	tenures  map[string]*tenure
	speeds   map[string]bool
	valid    time.Time
	stopping bool
	problem  string
}

// tenure is the time during which this process owns one hook.
type tenure struct {
	slot       slot
	lost       chan struct{} // closed when ownership is lost
	name       string        // of the lock
	connection uint64        // that holds it
	lock       herald.Lock   // what claims check, where they can
	from       time.Time     // nothing is sent before
	lastUse    time.Time     // the end of the last attempt
	used       bool
	leaving    bool // no new attempts, released when quiet
}

// NewOwnership makes an Ownership that owns nothing yet.
func NewOwnership(cfg OwnershipConfig) *Ownership {
	return &Ownership{
		cfg: cfg, wake: make(chan struct{}, 1), problem: "the lock session is not open yet",
		fast:    semaphore.NewWeighted(int64(cfg.MaxInFlight)),
		slow:    semaphore.NewWeighted(int64(cfg.MaxSlow)),
		tenures: map[string]*tenure{}, speeds: map[string]bool{},
	}
}

// OnEnded sets who is told about ends of attempts, before anything runs.
func (o *Ownership) OnEnded(f func(activities.Ended)) { o.cfg.Ended = f }

// Ended passes the end of an attempt on to the feed.
func (o *Ownership) Ended(e activities.Ended) {
	if o.cfg.Ended != nil {
		o.cfg.Ended(e)
	}
}

// Wake asks for a look at the list of hooks now: a new one was seen.
func (o *Ownership) Wake() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Problem says why hooks cannot be owned, empty when all is well.
func (o *Ownership) Problem() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.problem
}

// Owned counts the hooks this process owns.
func (o *Ownership) Owned() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.tenures)
}

// Ready says how long until the hook may be called by this process: 0 for now.
// false: this process does not own it.
func (o *Ownership) Ready(hookPHID string) (time.Duration, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.tenures[hookPHID]
	if t == nil || t.leaving || o.stopping {
		return 0, false
	}
	return max(0, t.from.Sub(o.cfg.Clock())), true
}

// Reserve waits for room among the attempts of the hook's kind. The slow kind
// has a bound of its own, so that hanging receivers leave room for the others.
func (o *Ownership) Reserve(ctx context.Context, hookPHID string) (release func(), err error) {
	room := o.slow
	if o.isFast(hookPHID) {
		room = o.fast
	}
	if err := room.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { room.Release(1) }), nil
}

func (o *Ownership) isFast(hookPHID string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.speeds[hookPHID]
}

// Admit lets an attempt into its hook, one at a time. First attempts were given
// room by their feed; retries come by themselves and find it here.
func (o *Ownership) Admit(ctx context.Context, ref activities.Ref, again bool) (*activities.Pass, activities.ClaimResult) {
	t, refusal := o.tenure(ctx, ref.HookPHID)
	if t == nil {
		return nil, refusal
	}
	kind, release := firstTry, func() {}
	if again {
		kind = retry
		within, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		var err error
		if release, err = o.Reserve(within, ref.HookPHID); err != nil {
			return nil, busy("All room for attempts to receivers of this kind is taken.")
		}
	}
	if !t.slot.enter(ctx, kind, patience) {
		release()
		return nil, busy("Another attempt to this hook is under way.")
	}
	return o.pass(ref.HookPHID, t, release), activities.ClaimResult{}
}

func busy(reason string) activities.ClaimResult {
	return activities.ClaimResult{State: activities.Busy, Reason: reason}
}

// tenure finds this process's tenure of a hook, or who has it.
func (o *Ownership) tenure(ctx context.Context, hookPHID string) (*tenure, activities.ClaimResult) {
	if wait, ok := o.Ready(hookPHID); ok && wait == 0 {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.tenures[hookPHID], activities.ClaimResult{State: activities.Unowned}
	} else if ok {
		return nil, activities.ClaimResult{State: activities.Unowned, Wait: wait,
			Reason: "The hook's last owner did not hand it over; its claims run out first."}
	}
	other, err := o.cfg.Records.OwnerOf(ctx, hookPHID)
	if err == nil && other != nil && other.Instance != o.cfg.Instance {
		return nil, activities.ClaimResult{State: activities.Elsewhere, Queue: other.TaskQueue}
	}
	return nil, activities.ClaimResult{State: activities.Unowned, Reason: "No process owns the hook at the moment."}
}

// pass is admission to the hook; Done may be called more than once.
func (o *Ownership) pass(hookPHID string, t *tenure, release func()) *activities.Pass {
	var once sync.Once
	return &activities.Pass{
		Queue: o.cfg.Queue, Fast: o.isFast(hookPHID), Lock: t.lock, Lost: t.lost,
		Owned: func() bool { return o.stillOwned(hookPHID, t) },
		Done: func(took time.Duration) {
			once.Do(func() {
				o.used(hookPHID, t, took)
				t.slot.leave()
				release()
			})
		},
	}
}

// stillOwned asks once more, by the monotonic clock.
func (o *Ownership) stillOwned(hookPHID string, t *tenure) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tenures[hookPHID] == t && o.cfg.Clock().Before(o.valid)
}

// used remembers when a hook was last written about and how fast it answered.
func (o *Ownership) used(hookPHID string, t *tenure, took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t.lastUse, t.used = o.cfg.Clock(), true
	if took > 0 {
		o.speeds[hookPHID] = took < fastWithin
	}
}

