package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"waybill/activities"
	"waybill/internal/herald"
)

// RequestInput starts or continues the delivery of one request.
type RequestInput struct {
	activities.Ref
	// Attempts counts the attempts of earlier runs of this workflow.
	Attempts int `json:"attempts,omitempty"`
	// Now is an operator's word to retry at once that an earlier run could not
	// act on yet.
	Now bool `json:"now,omitempty"`
	// Lease is how long a claim counts. A send that was not heard of within it has
	// ended or died.
	Lease time.Duration `json:"lease,omitempty"`
	// Attributes says that the server knows Waybill's search attributes.
	Attributes bool `json:"attributes,omitempty"`
}

// RequestResult is how a request's workflow ended.
type RequestResult struct {
	// Outcome is delivered, failed, collected, unprocessable, overtaken or
	// deferred (the row waits in its table and will be started again).
	Outcome  Outcome            `json:"outcome"`
	Attempts int                `json:"attempts"`
	Reason   string             `json:"reason,omitempty"`
	Row      *activities.RowEnd `json:"row,omitempty"`
	// State is the last claim's, empty when nobody answered it, and Wait how long
	// the hook's others have no better chance: for a starter in another process.
	State activities.ClaimState `json:"state,omitempty"`
	Wait  time.Duration         `json:"wait,omitempty"`
}

// Outcome is the closed set of a request workflow's ends.
type Outcome string

// The ends of a request's workflow.
const (
	Delivered     Outcome = "delivered"
	Failed        Outcome = "failed"
	Gone          Outcome = "collected"
	Unprocessable Outcome = "unprocessable"
	Overtaken     Outcome = "overtaken"
	Deferred      Outcome = "deferred"
)

// Request delivers one row of Phorge's queue: claim, send, and where it failed
// and may be repeated, rest and do it again, until it is delivered, failed for
// good or collected. The row is the truth; whatever ends this workflow, the
// row is found again.
//
// Cancelling takes effect between attempts: one that has begun ends first and
// its result is written. The row stays as it then is, so it is started again
// when due; to stop a hook, pause it.
func Request(ctx workflow.Context, in RequestInput) (RequestResult, error) {
	r := newRequest(ctx, in)
	for ctx.Err() == nil {
		next := r.attempt(ctx)
		r.tell(ctx, next)
		if next.end != "" {
			r.drain()
			return r.result(next), nil
		}
		r.rest(ctx, next)
		if ctx.Err() == nil && r.long(ctx) {
			return RequestResult{}, r.continueAsNew(ctx)
		}
	}
	return RequestResult{}, ctx.Err()
}

// step is what follows from an attempt: an end, or a wait and another one.
type step struct {
	end  Outcome
	wait time.Duration
	text string
	row  *activities.RowEnd
}

// attempt asks for the row and sends it if it may. Nothing cuts it in half:
// half an attempt is one whose outcome nobody knows.
func (r *request) attempt(ctx workflow.Context) step {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	claim, err := r.claim(ctx)
	r.last = claim.State
	if err != nil {
		return r.unanswered(err)
	}
	if claim.State != activities.Won {
		return r.unlessCrowded(r.afterClaim(claim), claim.Crowded)
	}
	asked := r.now
	r.now = false
	sent := r.send(ctx, claim)
	switch {
	case sent.State == activities.Unsent:
		r.now = asked // the word is still to be kept
	case asked:
		r.forgetRepeats(ctx)
	}
	return r.unlessCrowded(r.afterSend(sent), sent.Crowded)
}

// unlessCrowded ends a run that would be one too many of its hook's at rest, but
// not before a retry that an operator has asked for.
func (r *request) unlessCrowded(s step, crowded bool) step {
	if crowded && s.end == "" && !r.now && r.retryNow.Len() == 0 {
		s.end = Deferred
	}
	return s
}

// unanswered reads a claim that failed: a database was away, or the hook's
// owner. It may stand in the row by now, and then the next one waits for it.
func (r *request) unanswered(err error) step {
	s := step{wait: claimRetry, text: "A database could not be asked; it is asked again."}
	if notStarted(err) {
		s.text = "The hook's owner did not answer; it is asked again."
	}
	return r.unlessUnsent(s)
}

// afterClaim reads a claim that was not won.
func (r *request) afterClaim(c activities.ClaimResult) step {
	s := step{wait: orShort(c.Wait), text: c.Reason, row: c.Row}
	switch c.State {
	case activities.Finished, activities.Misconfigured:
		s.end = ended(c.Row)
	case activities.Collected:
		s.end = Gone
	case activities.Untouched:
		s.end = Unprocessable
	case activities.Paused, activities.BreakerOpen:
		// The hook may stay like that for days, with any number of its rows.
		s.end = Deferred
	case activities.Leased, activities.Resting:
		// Only this row has to wait; the run stays and shows for what.
	case activities.Busy:
		s.wait = r.longer(s.wait)
		return r.unlessUnsent(s)
	default:
		return r.unlessUnsent(s)
	}
	return s
}

// unlessUnsent ends a run that has not sent anything yet instead of letting it
// wait for its hook: the feed starts the row again when there is a chance, and
// 100,000 waiting rows stay rows.
func (r *request) unlessUnsent(s step) step {
	if r.attempts == 0 {
		s.end = Deferred
	}
	return s
}

// afterSend reads a send. The row that it reports is what stands in the table,
// so there is none where somebody else's does.
func (r *request) afterSend(s activities.SendResult) step {
	next := step{wait: orShort(s.Wait), text: s.Reason}
	if s.State != activities.Unsent {
		r.inVain = 0
	}
	switch s.State {
	case activities.Recorded:
		next.row = s.Row
		if !s.Retry {
			next.end = ended(s.Row)
		}
	case activities.Overtaken:
		next.end, next.text = Overtaken, "Somebody else changed the row during the attempt; theirs stands."
	case activities.Vanished:
		next.end, next.text = Gone, "Phorge removed the request during the attempt."
	case activities.Unsent:
		next.wait = r.longer(next.wait)
	case activities.Unknown, activities.Unwritten:
		// Asking for the row again finds out: its lease says how long to wait.
	}
	return next
}

// longer is the rest after asking in vain, longer each time: a system that is
// too busy to take up sends in time, or a hook whose retries stand in line, does
// not get over it by being asked more often.
func (r *request) longer(wait time.Duration) time.Duration {
	wait = max(wait, min(wait<<r.inVain, activities.LongestInVain))
	r.inVain = min(r.inVain+1, 4)
	return wait
}

// orShort gives a wait to states that name none.
func orShort(d time.Duration) time.Duration {
	if d <= 0 {
		return shortWait
	}
	return d
}

// ended names the end that a finished row stands for.
func ended(row *activities.RowEnd) Outcome {
	if row != nil && row.Status == herald.StatusSent {
		return Delivered
	}
	return Failed
}
