package activities

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"waybill/internal/herald"
	"waybill/internal/planted"
)

// Send makes the one POST that a claim allows and writes its result, before it
// reports to anybody: an answer must not depend on another task being
// scheduled. Only claims that this process won and has not used can be sent; a
// Send that runs again finds none and says so.
func (h *Herald) Send(ctx context.Context, in SendInput) (SendResult, error) {
	res := h.send(ctx, in)
	h.afterSend(in, &res)
	return res, nil
}

func (h *Herald) send(ctx context.Context, in SendInput) SendResult {
	c := h.claims.take(in.PHID, in.Version)
	if c == nil {
		return SendResult{State: Unsent, Reason: "This process holds no unused claim of that version."}
	}
	a := &attempt{in: in, claim: c}
	// Deferred, so that a fault in here does not take the hook's slot along.
	defer h.leave(a)
	if reason := h.late(c); reason != "" {
		h.sightings.void(c.claim)
		return SendResult{State: Unsent, Reason: reason}
	}
	a.reply = h.post(ctx, c)
	a.over = h.Clock()
	if a.reply.Answer.Timeout && a.reply.Took > h.Rules.Timeout+stoppedBy {
		a.reply.Aborted = true
	}
	if a.reply.Aborted {
		return h.aborted(a)
	}
	a.verdict = herald.Decide(a.reply.Answer, c.properties.RetryForever())
	return h.record(ctx, a)
}

// stoppedBy is how much longer than its timeout a call may have taken. Beyond
// it this process did not run meanwhile (stopped, frozen, moved). An answer that
// had arrived completely is no timeout (egress takes it); the rest of one may
// have found no room here, so that "no answer in time" is not known.
const stoppedBy = 2 * time.Second

// attempt is one use of a claim, from the call to its result in the row.
type attempt struct {
	in      SendInput
	claim   *held
	reply   Reply
	over    time.Time // when the call was over, by the local clock
	verdict herald.Verdict
	// unwritten is set when the result is known and not in the row.
	unwritten bool
	// stands is what the row says instead of the result, when somebody else
	// was faster.
	stands string
}

// late says why a claim may no longer be used: ownership is gone, or what is
// left of its lease does not cover a whole exchange and the write after it.
func (h *Herald) late(c *held) string {
	switch {
	case planted.Is(planted.NoLeaseCheck):
		return ""
	case !c.pass.Owned():
		return "Ownership of the hook was lost before sending."
	case h.Clock().Sub(c.begun) > h.Rules.useWithin():
		return "Too little of the claim's lease was left."
	}
	return ""
}

// post calls the receiver. Losing the hook's lock under way cuts the call off,
// and so does the moment from which the rest of the lease is for the write: the
// call's own timeout comes first, unless this process was stopped meanwhile.
func (h *Herald) post(ctx context.Context, c *held) Reply {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := h.Rules.overWithin() - h.Clock().Sub(c.begun)
	if planted.Is(planted.NoLeaseCheck) {
		left = h.Rules.Timeout
	}
	defer time.AfterFunc(left, cancel).Stop()
	go func() {
		select {
		case <-c.pass.Lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	return h.Poster.Post(ctx, c.call)
}

// aborted is the end of a call that was cut off from this side.
func (h *Herald) aborted(a *attempt) SendResult {
	res := SendResult{State: Unknown, Wait: h.Rules.Lease, Reason: "The call was cut off; whether it arrived is unknown."}
	if a.reply.Sent {
		h.Meter.Attempt("unknown", a.reply.Took)
	} else {
		h.sightings.void(a.claim.claim)
		res = SendResult{State: Unsent, Reason: "The call was cut off before anything was sent."}
	}
	h.logAttempt(a, res.State, nil)
	return res
}

// record writes the verdict under the claim's fence. The write outlives a
// cancelled context: the result is known now.
func (h *Herald) record(ctx context.Context, a *attempt) SendResult {
	v := a.verdict
	w := a.result()
	if v.Completed {
		w.Epoch = herald.EpochNow
	}
	out, stands, err := h.write(ctx, a.in.Ref, w)
	a.stands = stands
	res := SendResult{Row: rowEnd(v), Retry: v.Status == herald.StatusQueued, Wait: h.Rules.Backoff, Reason: a.reply.Fault}
	switch {
	case err != nil:
		a.unwritten = !planted.Is(planted.ReportFirst)
		res.State, res.Unwritten = Unwritten, &WriteBackInput{
			Ref: a.in.Ref, Version: w.Claim.Version, Verdict: v, Completed: a.completed(), Before: w.Before,
		}
	case out == herald.Collected:
		res.State, res.Reason = Vanished, "Phorge removed the request under way."
	case out == herald.Fenced:
		res.State, res.Reason = Overtaken, "Somebody else changed the row under way; theirs stands."
	default:
		res.State = Recorded
	}
	h.Meter.Attempt(outcome(a.reply.Answer, v), a.reply.Took)
	h.logAttempt(a, res.State, err)
	return res
}

// write makes one fenced write within the allowance that the lease has for it.
func (h *Herald) write(ctx context.Context, ref Ref, w herald.ResultWrite) (out herald.WriteOutcome, stands string, err error) {
	if planted.Is(planted.ReportFirst) {
		return "", "", errors.New("left to the write-back")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.Rules.Allowance)
	defer cancel()
	return h.finish(ctx, ref, w)
}

// result is the result as it is to stand in the row.
func (a *attempt) result() herald.ResultWrite {
	return herald.ResultWrite{
		Claim: a.claim.claim, Verdict: a.verdict, Epoch: a.completed(), Before: a.claim.before,
		Properties: a.claim.properties.WithError(a.verdict.ErrorType, a.verdict.Code),
	}
}

// completed is the moment of completion in the database's clock (seconds), as
// far as this process can tell it; EpochNone when nothing was sent.
func (a *attempt) completed() int64 {
	if !a.verdict.Completed {
		return herald.EpochNone
	}
	return a.claim.dbNow + int64(a.over.Sub(a.claim.loaded)/time.Second)
}

// outcome is the metric's label for an attempt.
func outcome(a herald.Answer, v herald.Verdict) string {
	switch {
	case v.Result == herald.ResultOkay:
		return "ok"
	case v.Result == herald.ResultNone:
		return "config"
	case v.ErrorType == herald.ErrorTimeout:
		return "timeout"
	case a.HTTPStatus != 0 && a.Curl == 0:
		return "http_error"
	}
	return "transport"
}

// logAttempt writes the one line of an attempt, always with the same keys: a
// verdict that was not reached is empty.
func (h *Herald) logAttempt(a *attempt, state SendState, write error) {
	code, problem := "", ""
	if !a.reply.Aborted {
		code = a.verdict.Code.String()
	}
	if write != nil {
		problem = write.Error()
	}
	level := zap.InfoLevel
	if state == Unknown || state == Unwritten || state == Overtaken {
		level = zap.WarnLevel
	}
	h.Log.Log(level, "attempt",
		zap.String("request", a.in.PHID), zap.String("hook", a.in.HookPHID), zap.Int("attempt", a.in.Attempt),
		zap.Int64("version", a.in.Version), zap.String("state", string(state)), zap.Duration("took", a.reply.Took),
		zap.String("status", string(a.verdict.Status)), zap.String("result", string(a.verdict.Result)),
		zap.String("error_type", string(a.verdict.ErrorType)), zap.String("error_code", code),
		zap.String("fault", a.reply.Fault), zap.String("stands", a.stands), zap.String("write_error", problem))
}
