package worker

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/internal/ledger"
	"waybill/internal/planted"
	"waybill/internal/telemetry"
)

// HoldAfter is how long a lock is kept after the last write about its hook:
// Phorge checks "queued" before it asks for the lock, and not again.
const HoldAfter = 5 * time.Second

// Times of ownership.
const (
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
	owners
}

// owners reads those records.
type owners interface {
	OwnerOf(ctx context.Context, hookPHID string) (*ledger.Owner, error)
	Owners(ctx context.Context) ([]ledger.Owner, error)
}

// sessions is where processes that own hooks find each other.
type sessions interface {
	Joined(ctx context.Context, s ledger.Session) error
	Left(ctx context.Context, s ledger.Session) (removed bool, err error)
	Sessions(ctx context.Context) ([]ledger.Session, error)
}

// OwnershipConfig is what owning hooks needs; every field but Feeds, Hold,
// Ended and Meter is required.
type OwnershipConfig struct {
	// LockDSN is the server where Phorge's locks live; SameServer says that the
	// herald database is there too, so that claims can check the lock.
	LockDSN    string
	SameServer bool
	Namespace  string
	// Instance names this run of the process, Queue is its own task queue.
	Instance, Queue string
	// Feeds says that this process looks for its hooks' work itself.
	Feeds bool
	Lease time.Duration
	// Hold is how long a lock is kept after the last write: HoldAfter, or 0
	// where no worker of Phorge's is there to be overtaken.
	Hold time.Duration
	// MaxInFlight bounds attempts to receivers that answer fast, MaxSlow those
	// to slow and unknown ones.
	MaxInFlight, MaxSlow int
	Hooks                func(ctx context.Context) ([]string, error)
	Records              records
	Sessions             sessions
	Ended                func(activities.Ended)
	Meter                *telemetry.Herald // nil counts nothing
	Log                  *zap.Logger
	Clock                func() time.Time
}

// Ownership holds the locks of its share of the hooks on one session, as
// Phorge's own worker does for the length of a call: whoever has a hook's lock
// is the only one to call it. It admits one attempt at a time to a hook, and
// loses all hooks at once with the session.
type Ownership struct {
	cfg   OwnershipConfig
	rooms rooms
	wake  chan struct{}

	mu      sync.Mutex
	tenures map[string]*tenure
	slots   map[string]*slot // they outlive tenures, as attempts may
	// waits are until when hooks wait for the claims of a former owner: also on
	// the next session, whose record no longer tells of that one.
	waits    map[string]time.Time
	speeds   map[string]bool
	valid    time.Time
	stopping bool
	problem  string
}

// tenure is the time during which this process owns one hook.
type tenure struct {
	slot    *slot
	lost    chan struct{} // closed when ownership is lost
	name    string        // of the lock
	lock    herald.Lock   // what claims check, where they can
	since   time.Time     // when the lock was taken
	from    time.Time     // nothing is sent before
	lastUse time.Time     // the last write about the hook
	used    bool
	leaving bool // no new attempts, released when quiet
}

// NewOwnership makes an Ownership that owns nothing yet.
func NewOwnership(cfg OwnershipConfig) *Ownership {
	return &Ownership{
		cfg: cfg, wake: make(chan struct{}, 1), problem: "the lock session is not open yet",
		rooms:   newRooms(cfg.MaxInFlight, cfg.MaxSlow),
		tenures: map[string]*tenure{}, slots: map[string]*slot{}, waits: map[string]time.Time{}, speeds: map[string]bool{},
	}
}

// OnEnded sets who is told about ends of attempts. Those before are told to
// nobody: nothing has been fed yet.
func (o *Ownership) OnEnded(f func(activities.Ended)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cfg.Ended = f
}

// Ended passes the end of an attempt on to the feed.
func (o *Ownership) Ended(e activities.Ended) {
	o.mu.Lock()
	tell := o.cfg.Ended
	o.mu.Unlock()
	if tell != nil {
		tell(e)
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
func (o *Ownership) Ready(hookPHID string) (wait time.Duration, owned bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, wait, owned = o.ready(hookPHID)
	return wait, owned
}

// ready is Ready under the lock, with the tenure.
func (o *Ownership) ready(hookPHID string) (t *tenure, wait time.Duration, owned bool) {
	t = o.tenures[hookPHID]
	if t == nil || t.leaving || o.stopping {
		return nil, 0, false
	}
	return t, max(0, t.from.Sub(o.cfg.Clock())), true
}

func (o *Ownership) has(hook string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tenures[hook] != nil
}

// begin starts a tenure under a lock that was just taken and recorded.
func (o *Ownership) begin(hook, lock string, connection uint64, clean bool) {
	now := o.cfg.Clock()
	t := &tenure{lost: make(chan struct{}), since: now, from: now, name: lock}
	if o.cfg.SameServer {
		t.lock = herald.Lock{Name: lock, Connection: connection}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !clean {
		o.waits[hook] = now.Add(o.cfg.Lease)
	}
	if until := o.waits[hook]; now.Before(until) {
		t.from = until
	} else {
		delete(o.waits, hook)
	}
	if o.slots[hook] == nil {
		o.slots[hook] = newSlot()
	}
	t.slot = o.slots[hook]
	o.tenures[hook] = t
	o.cfg.Meter.Ownership(context.Background(), telemetry.OwnershipTaken, 1)
}

// owe makes the next tenure of the hook wait for a former owner's claims: its
// record may have been replaced by one of ours whose answer was lost, and that
// one no longer tells whether it was released.
func (o *Ownership) owe(hook string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits[hook] = o.cfg.Clock().Add(o.cfg.Lease)
}

// owed is how long the next tenure of the hook waits in any case.
func (o *Ownership) owed(hook string) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(0, o.waits[hook].Sub(o.cfg.Clock()))
}

// quiet lists the hooks being left that nothing holds any more: no attempt (one
// whose result waits to be written keeps its slot), long enough after the last
// write, and no wait for a former owner's claims, but for a process that ends.
func (o *Ownership) quiet() map[string]*tenure {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[string]*tenure{}
	for hook, t := range o.tenures {
		held := t.used && o.cfg.Clock().Sub(t.lastUse) < o.cfg.Hold
		if t.leaving && (t.slot.idle() && !held || planted.Is(planted.EarlyRelease)) && (o.stopping || !o.waiting(t)) {
			out[hook] = t
		}
	}
	return out
}

// waiting says that a former owner's claims have not run out yet.
func (o *Ownership) waiting(t *tenure) bool { return o.cfg.Clock().Before(t.from) }

// end forgets a tenure whose lock was given back.
func (o *Ownership) end(hook string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.tenures, hook)
	o.cfg.Meter.Ownership(context.Background(), telemetry.OwnershipReleased, 1)
}

// loseAll ends every tenure at once: the session is gone, or about to be.
func (o *Ownership) loseAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cfg.Meter.Ownership(context.Background(), telemetry.OwnershipLost, len(o.tenures))
	for hook, t := range o.tenures {
		close(t.lost)
		delete(o.tenures, hook)
	}
	o.valid = time.Time{}
}
