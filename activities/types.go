package activities

import (
	"time"

	"waybill/internal/herald"
)

// Ref names a request in inputs of workflows and activities: ids only, never a
// payload or a key, because histories are readable and live for days.
type Ref struct {
	// ID is the row's primary key, PHID its permanent name.
	ID       uint64 `json:"id"`
	PHID     string `json:"phid"`
	HookPHID string `json:"hook"`
}

// ClaimInput asks for the right to send a request once.
type ClaimInput struct {
	Ref
	// Attempt counts from 1 within one workflow run chain. The first was started
	// by its hook's feed, which has made room for it, whether or not the row was
	// sent before; later ones come by themselves.
	Attempt int `json:"attempt"`
	// Now skips the backoff: an operator asked for a retry at once.
	Now bool `json:"now,omitempty"`
}

// ClaimState is what became of asking for a claim.
type ClaimState string

// The states of a claim; there is no other. Every state but Won means that
// nothing may be sent.
const (
	// Won: this process may POST once, under Version.
	Won ClaimState = "won"
	// Finished: the row is no longer queued.
	Finished ClaimState = "finished"
	// Misconfigured: the hook's own settings fail the request for good, and the
	// row says so.
	Misconfigured ClaimState = "misconfigured"
	// Collected: the row is gone.
	Collected ClaimState = "collected"
	// Untouched: the row cannot be processed and was left as it is.
	Untouched ClaimState = "untouched"
	// Elsewhere: another process owns the hook; Queue reaches it.
	Elsewhere ClaimState = "elsewhere"
	// Unowned: no process owns the hook (yet).
	Unowned ClaimState = "unowned"
	// Paused: an operator paused the hook, or released it to Phorge.
	Paused ClaimState = "paused"
	// BreakerOpen: too many of the hook's rows failed lately.
	BreakerOpen ClaimState = "breaker"
	// Resting: the backoff after a failure is not over.
	Resting ClaimState = "resting"
	// Busy: another attempt holds the hook's slot.
	Busy ClaimState = "busy"
	// Leased: somebody's claim stands on the row and may still be in flight.
	Leased ClaimState = "leased"
	// Lost: another claim was faster.
	Lost ClaimState = "lost"
)

// ClaimResult is a claim's state and what the workflow needs to go on.
type ClaimResult struct {
	State ClaimState `json:"state"`
	// Reason is one plain sentence for people.
	Reason string `json:"reason,omitempty"`
	// Version is the claimed dateModified.
	Version int64 `json:"version,omitempty"`
	// Queue is the task queue of the owning process.
	Queue string `json:"queue,omitempty"`
	// Fast says that the receiver has been answering fast, so that the send may
	// run inside the workflow task.
	Fast bool `json:"fast,omitempty"`
	// Wait is how long asking again is pointless.
	Wait time.Duration `json:"wait,omitempty"`
	// Crowded says that enough of the hook's requests rest in open workflows:
	// this one should end instead, and be started again when it is due.
	Crowded bool `json:"crowded,omitempty"`
	// Row is how the row stands, for the states that read it as finished.
	Row *RowEnd `json:"row,omitempty"`
}

// RowEnd is how an attempt left the row.
type RowEnd struct {
	Status    herald.Status `json:"status"`
	Result    herald.Result `json:"result"`
	ErrorType string        `json:"errorType,omitempty"`
	ErrorCode string        `json:"errorCode,omitempty"`
}

// SendInput is a claim to be used.
type SendInput struct {
	Ref
	Version int64 `json:"version"`
	Attempt int   `json:"attempt"`
}

// SendState is what became of a send.
type SendState string

// The states of a send; there is no other.
const (
	// Recorded: the attempt's result stands in the row.
	Recorded SendState = "recorded"
	// Unwritten: the attempt has a result, but writing it failed; WriteBack
	// carries on with it.
	Unwritten SendState = "unwritten"
	// Overtaken: somebody else changed the row under way; theirs stands.
	Overtaken SendState = "overtaken"
	// Vanished: the row was collected under way.
	Vanished SendState = "vanished"
	// Unknown: the call was cut off under way; nobody can know what arrived.
	Unknown SendState = "unknown"
	// Unsent: this process does not hold the claim (any more), or too little of
	// its lease was left. Nothing was sent.
	Unsent SendState = "unsent"
)

// SendResult is a send's state and the verdict it reached.
type SendResult struct {
	State  SendState `json:"state"`
	Reason string    `json:"reason,omitempty"`
	Row    *RowEnd   `json:"row,omitempty"`
	// Retry says that the row stays queued, and Wait until when it rests.
	Retry bool          `json:"retry,omitempty"`
	Wait  time.Duration `json:"wait,omitempty"`
	// Crowded is as in ClaimResult.
	Crowded bool `json:"crowded,omitempty"`
	// Unwritten carries the result that WriteBack must write.
	Unwritten *WriteBackInput `json:"unwritten,omitempty"`
}

// WriteBackInput is a result that is known but not written. The body of the
// properties is not in it: under the fence the row still has what was read.
type WriteBackInput struct {
	Ref
	Version int64          `json:"version"`
	Verdict herald.Verdict `json:"verdict"`
	// Completed is the moment of completion, in seconds of the database's
	// clock, 0 when nothing was sent.
	Completed int64 `json:"completed"`
	// Before is the row's lastRequestEpoch before the attempt.
	Before int64 `json:"before,omitempty"`
}

// WriteBackResult is what became of a late write.
type WriteBackResult struct {
	Outcome herald.WriteOutcome `json:"outcome"`
}

// Ended tells a hook's feed that an attempt is over, so that the next may
// start, and what stands in the way of the hook's others.
type Ended struct {
	Ref
	State ClaimState
	// Wait is how long the whole hook is held up (breaker, pause).
	Wait time.Duration
}
