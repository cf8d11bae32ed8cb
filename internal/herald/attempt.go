package herald

import (
	"errors"
	"time"
)

// ErrGone says that a request's row does not exist, most likely because
// Phorge's garbage collector took it.
var ErrGone = errors.New("the request row is gone")

// ErrUnclaimable says that a row's values leave no room for a claim.
var ErrUnclaimable = errors.New("dateModified is at the end of its range, no claim can move it")

// ErrNoVersion says that a claim was made and its version is not known, so that
// it can neither be sent nor written under.
var ErrNoVersion = errors.New("the database does not return the claim's version: " +
	"is there a trigger on herald_webhookrequest, or a proxy that changes answers?")

// Lock names the user lock that a claim requires, and the session that must
// hold it. The zero value requires none: the lock lives on another server.
type Lock struct {
	Name       string
	Connection uint64
}

// Pause is an operator's order that nothing be sent to a hook.
type Pause struct {
	HookPHID string    `json:"hook"`
	At       time.Time `json:"at"`
	By       string    `json:"by"`
	Reason   string    `json:"reason"`
	// Released: the hook is not kept either but given back to Phorge, whose own
	// worker delivers.
	Released bool `json:"released,omitempty"`
}

// Verb says in words what was done to the hook.
func (p Pause) Verb() string {
	if p.Released {
		return "released to Phorge"
	}
	return "paused"
}

// Snapshot is everything one read of the database says about a request: the
// row, its hook, the breaker's evidence and the clock that judges them. Taking
// it in one statement keeps an attempt's decisions about one moment.
type Snapshot struct {
	Request Request
	// Hook is nil when the hook's row is gone.
	Hook *Hook
	// ThresholdFailure is the lastRequestEpoch of the hook's n-th newest failed
	// row, n being the breaker's threshold; 0 when it has fewer.
	ThresholdFailure int64
	// Now is the database's clock, in seconds.
	Now int64
}

// FarFuture is how far ahead of the database's clock a claim or a failure may be
// dated and still be waited for. What lies further ahead was written by no clock
// that will be right again, and only an operator can help. The statements of
// heralddb have it in seconds.
const FarFuture = 24 * time.Hour

// BreakerWait is how long the breaker keeps the hook's requests back: until the
// failure in evidence slides out of the window, whose first second is included.
// 0: it is closed.
func (s Snapshot) BreakerWait(window time.Duration) time.Duration {
	if s.ThresholdFailure == 0 {
		return 0
	}
	return max(0, time.Duration(s.ThresholdFailure-s.Now)*time.Second+window+time.Second)
}

// Claim is the right to send one request once. Version is the dateModified
// that the claim wrote; a result is accepted only under it.
type Claim struct {
	ID      uint64
	Version int64
}

// Epoch values with a meaning of their own in a ResultWrite.
const (
	// EpochNone clears lastRequestEpoch: nothing was sent.
	EpochNone int64 = 0
	// EpochNow takes the database's clock at the write.
	EpochNow int64 = -1
)

// ResultWrite is the end of an attempt as it is to stand in the row.
type ResultWrite struct {
	Claim      Claim
	Verdict    Verdict
	Properties []byte
	// Epoch becomes lastRequestEpoch: seconds of the database's clock,
	// EpochNone or EpochNow.
	Epoch int64
	// Before is the lastRequestEpoch that the claim found. It tells a repeated
	// failure from the one before it, when a write's acknowledgement is lost.
	Before int64
}

// WriteOutcome says what became of a fenced write.
type WriteOutcome string

// The outcomes of a fenced write; there is no other.
const (
	// Written: the row carries the result, now or from an earlier try of the
	// same write whose answer was lost.
	Written WriteOutcome = "written"
	// Collected: the row is gone (Phorge's garbage collector).
	Collected WriteOutcome = "collected"
	// Fenced: somebody else changed the row since the claim; it was left alone.
	Fenced WriteOutcome = "fenced"
)

// Knowledge is an answer that may be impossible to get.
type Knowledge int

// Whether something exists, as far as Waybill may look.
const (
	Unknown Knowledge = iota
	Exists
	Missing
)

// Candidate is a row that looks as if it could be sent. Only a claim decides.
type Candidate struct {
	ID       uint64
	PHID     string
	HookPHID string
	// Modified is the version that was seen.
	Modified int64
	// Retry is set for a row whose earlier attempt failed.
	Retry bool
	// Claimed is set when somebody's claim stands on the row; Expired when the
	// database's clock says that its lease is over.
	Claimed, Expired bool
}

// Claimed reports whether a claim stands on the row: some write has moved
// dateModified past the moment the row was made or its last result written.
// A row created, claimed and failed within one second ends two above its
// epoch, so a failed row tolerates that much.
func (r Request) Claimed() bool {
	if r.LastResult == ResultFail {
		return r.Modified > r.LastEpoch+2
	}
	return r.Modified != r.Created
}
