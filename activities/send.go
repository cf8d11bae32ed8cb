package activities

import (
	"context"
	"time"

	"go.uber.org/zap"

	"waybill/internal/herald"
)

// Send makes the one POST that a claim allows and writes its result, before it
// reports to anybody: an answer must not depend on another task being
// scheduled. Only claims that this process won and has not used can be sent; a
// Send that runs again finds none and says so.
func (h *Herald) Send(ctx context.Context, in SendInput) (SendResult, error) {
	c := h.claims.take(in.PHID, in.Version)
	if c == nil {
		return SendResult{State: Unsent, Reason: "This process holds no unused claim of that version."}, nil
	}
	var took time.Duration
	defer func() {
		c.pass.Done(took)
		h.Gate.Ended(Ended{Ref: in.Ref, State: Won})
	}()
	if reason := h.late(c); reason != "" {
		h.sightings.void(c.claim)
		return SendResult{State: Unsent, Reason: reason}, nil
	}
	reply := h.post(ctx, c)
	took = reply.Took
	if reply.Aborted {
		return h.aborted(in, c, reply), nil
	}
	return h.record(ctx, in, c, reply), nil
}

// late says why a claim may no longer be used: ownership is gone, or what is
// left of its lease does not cover a whole exchange and the write after it.
func (h *Herald) late(c *held) string {
	left := h.Rules.Lease - h.Clock().Sub(c.begun)
	switch {
	case !c.pass.Owned():
		return "Ownership of the hook was lost before sending."
	case left < h.Rules.Timeout+h.Rules.Allowance:
		return "Too little of the claim's lease was left."
	}
	return ""
}

// post calls the receiver; losing the hook's lock under way cuts the call off.
func (h *Herald) post(ctx context.Context, c *held) Reply {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
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
func (h *Herald) aborted(in SendInput, c *held, reply Reply) SendResult {
	res := SendResult{State: Unknown, Wait: h.Rules.Lease, Reason: "The call was cut off; whether it arrived is unknown."}
	if !reply.Sent {
		h.sightings.void(c.claim)
		res = SendResult{State: Unsent, Reason: "The call was cut off before anything was sent."}
	}
	h.Meter.Attempt("unknown", reply.Took)
	h.logAttempt(in, c, reply, nil, res.State)
	return res
}

// record turns the reply into a verdict and writes it under the claim's fence.
// The write outlives a cancelled context: the result is known now.
func (h *Herald) record(ctx context.Context, in SendInput, c *held, reply Reply) SendResult {
	v := herald.Decide(reply.Answer, c.properties.RetryForever())
	w := herald.ResultWrite{Claim: c.claim, Verdict: v, Properties: c.properties.WithError(v.ErrorType, v.Code)}
	if v.Completed {
		w.Epoch = herald.EpochNow
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.Rules.Allowance)
	defer cancel()
	out, err := h.Rows.Finish(ctx, w)
	res := SendResult{Row: rowEnd(v), Retry: v.Status == herald.StatusQueued, Wait: h.Rules.Backoff, Reason: reply.Fault}
	switch {
	case err != nil:
		res.State, res.Unwritten = Unwritten, h.unwritten(in, c, v)
	case out == herald.Collected:
		res.State = Vanished
	case out == herald.Fenced:
		res.State = Overtaken
	default:
		res.State = Recorded
	}
	h.Meter.Attempt(outcome(reply.Answer, v), reply.Took)
	h.logAttempt(in, c, reply, err, res.State)
	return res
}

// unwritten is what a later write needs. The moment of completion is kept in
// the database's clock, as far as this process can tell it.
func (h *Herald) unwritten(in SendInput, c *held, v herald.Verdict) *WriteBackInput {
	h.Meter.WriteBacksWaiting(1)
	wb := &WriteBackInput{Ref: in.Ref, Version: c.claim.Version, Verdict: v}
	if v.Completed {
		wb.Completed = c.dbNow + int64(h.Clock().Sub(c.loaded)/time.Second)
	}
	return wb
}

// outcome is the metric's label for an attempt.
func outcome(a herald.Answer, v herald.Verdict) string {
	switch {
	case v.Result == herald.ResultOkay:
		return "ok"
	case v.Result == herald.ResultNone:
		return "config"
	case a.Timeout:
		return "timeout"
	case a.HTTPStatus != 0 && a.Curl == 0:
		return "http_error"
	}
	return "transport"
}

// logAttempt writes the one line of an attempt.
func (h *Herald) logAttempt(in SendInput, c *held, reply Reply, write error, state SendState) {
	v := herald.Decide(reply.Answer, c.properties.RetryForever())
	fields := []zap.Field{
		zap.String("request", in.PHID), zap.String("hook", in.HookPHID), zap.Int("attempt", in.Attempt),
		zap.String("state", string(state)), zap.Int64("version", in.Version), zap.Duration("took", reply.Took),
	}
	if !reply.Aborted {
		fields = append(fields, zap.String("status", string(v.Status)), zap.String("result", string(v.Result)),
			zap.String("error_type", string(v.ErrorType)), zap.String("error_code", v.Code.String()))
	}
	if reply.Fault != "" {
		fields = append(fields, zap.String("fault", reply.Fault))
	}
	if write != nil {
		h.Log.Warn("attempt, result not written yet", append(fields, zap.Error(write))...)
		return
	}
	h.Log.Info("attempt", fields...)
}
