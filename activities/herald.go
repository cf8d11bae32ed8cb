// Package activities holds what touches the world on a workflow's behalf: claim
// a request, send it, write its result back, keep an operator's pause. It
// decides by the pure packages and reaches databases, receivers and the
// process's ownership of hooks through the small interfaces below. Workflows
// refer to its methods; the worker package makes and registers it.
package activities

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"waybill/internal/herald"
)

// rows is Phorge's request table.
type rows interface {
	Load(ctx context.Context, id uint64) (herald.Snapshot, error)
	Claim(ctx context.Context, id uint64, seen int64, lock herald.Lock) (herald.Claim, bool, error)
	Finish(ctx context.Context, w herald.ResultWrite) (herald.WriteOutcome, error)
}

// objects are Phorge's object and transaction tables, where they may be read.
type objects interface {
	Object(ctx context.Context, table herald.Table, phid string) (herald.Knowledge, error)
	Transactions(ctx context.Context, table herald.Table, objectPHID string, phids []string) ([]string, bool, error)
}

// pauses is where operators' pauses are kept.
type pauses interface {
	Paused(ctx context.Context, hookPHID string) (*herald.Pause, error)
	SetPause(ctx context.Context, p herald.Pause) error
	EndPause(ctx context.Context, p herald.Pause) error
}

// gate is this process's ownership of hooks: who may enter, and who listens
// for the end of an attempt.
type gate interface {
	// Admit waits a little for the hook's slot. Without a pass the result says
	// why, in State, Queue and Wait.
	Admit(ctx context.Context, ref Ref, retry bool) (*Pass, ClaimResult)
	Ended(e Ended)
}

// poster makes the call. It never follows, repeats or remembers anything.
type poster interface {
	Post(ctx context.Context, c Call) Reply
}

// meter counts. Labels are closed sets; hooks are not among them.
type meter interface {
	// Claim counts how asking for a claim ended, Untouched once per version of
	// a row.
	Claim(state ClaimState)
	// Attempt counts an attempt: ok, http_error, timeout, transport, config or
	// unknown.
	Attempt(outcome string, took time.Duration)
	// WriteBacksWaiting is +1 when a known result could not be written, and -1
	// when this process has seen it through.
	WriteBacksWaiting(delta int)
}

// Pass is admission to a hook: its slot, held until Done.
type Pass struct {
	// Queue is the task queue of this process.
	Queue string
	// Fast says that the receiver has been answering fast.
	Fast bool
	// Lock is what the claim must find held.
	Lock herald.Lock
	// Since is when this process got the hook's lock: claims on its rows that
	// are not this process's own were made before.
	Since time.Time
	// Lost is closed when ownership of the hook is lost.
	Lost <-chan struct{}
	// Owned asks once more, by the monotonic clock.
	Owned func() bool
	// Done gives the slot back, after the last write about the row: the lock's
	// hold counts from here. took is how long the receiver needed, 0 when it
	// gave no answer of its own. It may be called more than once.
	Done func(took time.Duration)
}

// Call is one POST, complete: what is signed is what is sent.
type Call struct {
	Target    herald.Target
	Body      []byte
	Signature string
	Timeout   time.Duration
}

// Reply is what a call came to.
type Reply struct {
	Answer herald.Answer
	// Aborted: the call was cut off from this side. Sent says whether anything
	// may have reached the receiver by then.
	Aborted, Sent bool
	// Fault is a fixed sentence about what went wrong, without address or URL.
	Fault string
	Took  time.Duration
}

// Rules are the lane's times and bounds.
type Rules struct {
	// Timeout bounds one exchange, Allowance the write after it; Lease is how
	// long a claim counts and covers both.
	Timeout, Allowance, Lease time.Duration
	// Backoff is how long a failed row rests.
	Backoff time.Duration
	// BreakerWindow is how far back failed rows count.
	BreakerWindow time.Duration
}

// useWithin is how long after its beginning a claim may still be used: the rest
// of its lease must cover a whole exchange and the write after it.
func (r Rules) useWithin() time.Duration { return r.Lease - r.Timeout - r.Allowance }

// overWithin is when a call must be over at the latest, counted from the
// beginning of its claim: what is left of the lease is for the write.
func (r Rules) overWithin() time.Duration { return r.Lease - r.Allowance }

// Config is what a Herald is made of; every field is needed.
type Config struct {
	Rows    rows
	Objects objects
	Pauses  pauses
	Gate    gate
	Poster  poster
	Meter   meter
	Witness witness
	Log     *zap.Logger
	Clock   func() time.Time
	Rules   Rules
}

// Herald are the activities of the Herald lane. A process has one: between
// Claim and Send it remembers the claims it won, and only those can be sent.
type Herald struct {
	Config
	claims    claims
	sightings sightings
	reports   reports
	sleepers  sleepers
	breakers  sync.Map // hook PHID -> time.Time until when, for one log line in and one out
}

// NewHerald makes the activities.
func NewHerald(c Config) *Herald {
	h := &Herald{Config: c}
	h.claims.held = map[string]*held{}
	h.sleepers = sleepers{hooks: map[string]map[string]time.Time{}}
	return h
}
