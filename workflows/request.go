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
	// State is the last claim's, for a starter in another process.
	State activities.ClaimState `json:"state,omitempty"`
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
func Request(ctx workflow.Context, in RequestInput) (RequestResult, error) {
	r := newRequest(ctx, in)
	for {
		if r.shouldContinueAsNew(ctx) {
			return RequestResult{}, r.continueAsNew(ctx)
		}
		claim, err := r.claim(ctx)
		if err != nil {
			if err := r.pause(ctx, claimRetry, "a database could not be asked; asking again"); err != nil {
				return r.cancelled(ctx, err)
			}
			continue
		}
		r.last = claim.State
		step := r.afterClaim(claim)
		if claim.State == activities.Won {
			step = r.afterSend(r.send(ctx, claim))
		}
		r.tell(ctx, step)
		if step.end != "" {
			return r.result(step), nil
		}
		if err := r.pause(ctx, step.wait, step.text); err != nil {
			return r.cancelled(ctx, err)
		}
	}
}

// step is what follows from a claim or a send: an end, or a wait and another
// round.
type step struct {
	end  Outcome
	wait time.Duration
	text string
	row  *activities.RowEnd
}

// afterClaim reads a claim that was not won. A run that has not sent anything
// yet does not wait for its hook: it ends, and the feed starts the row again
// when there is a chance.
func (r *request) afterClaim(c activities.ClaimResult) step {
	s := step{wait: c.Wait, text: c.Reason, row: c.Row}
	switch c.State {
	case activities.Finished, activities.Misconfigured:
		s.end = ended(c.Row)
	case activities.Collected:
		s.end = Gone
	case activities.Untouched:
		s.end = Unprocessable
	case activities.Leased, activities.Resting:
		// Only this row has to wait; the run stays and shows for what.
	default:
		if r.attempts == 0 || c.State == activities.Paused {
			s.end = Deferred
		}
	}
	return s
}

// afterSend reads a send.
func (r *request) afterSend(s activities.SendResult) step {
	next := step{wait: s.Wait, text: s.Reason, row: s.Row}
	switch s.State {
	case activities.Recorded:
		if !s.Retry {
			next.end = ended(s.Row)
		}
	case activities.Overtaken:
		next.end = Overtaken
	case activities.Vanished:
		next.end = Gone
	}
	return next
}

// ended names the end that a finished row stands for.
func ended(row *activities.RowEnd) Outcome {
	if row != nil && row.Status == herald.StatusSent {
		return Delivered
	}
	return Failed
}
