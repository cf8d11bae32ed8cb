package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"waybill/internal/herald"
	"waybill/internal/signature"
)

// Claim asks for the right to send a request once. It takes the hook's slot,
// looks at the row, and moves the row's version; what stands in the way comes
// back as a state. An error means that a database could not be asked: nothing
// is sent, and asking again is safe.
//
// A Claim that runs again because its workflow task was lost finds its own
// unused claim and returns it, or reads from the row what became of it.
func (h *Herald) Claim(ctx context.Context, in ClaimInput) (ClaimResult, error) {
	if own := h.claims.peek(in.PHID); own != nil {
		return won(own), nil
	}
	pass, refusal := h.Gate.Admit(ctx, in.Ref, in.Attempt > 1)
	res, err := h.claim(ctx, in, pass, refusal)
	if err != nil || res.State != Won {
		if pass != nil {
			pass.Done(0)
		}
		h.Gate.Ended(Ended{Ref: in.Ref, State: res.State, Wait: res.Wait})
	}
	if err == nil {
		h.Meter.Claim(res.State)
	}
	return res, err
}

func (h *Herald) claim(ctx context.Context, in ClaimInput, pass *Pass, refusal ClaimResult) (ClaimResult, error) {
	loaded := h.Clock()
	s, err := h.Rows.Load(ctx, in.ID)
	if errors.Is(err, herald.ErrGone) || (err == nil && s.Request.PHID != in.PHID) {
		h.sightings.forget(in.ID)
		return ClaimResult{State: Collected, Reason: "Phorge has removed the request."}, nil
	}
	if err != nil {
		return ClaimResult{}, err
	}
	ready, end, err := h.inspect(ctx, s)
	if err != nil || end.State != "" {
		return end, err
	}
	if pass == nil {
		return refusal, nil
	}
	if wait := h.leased(s); wait > 0 {
		return stillLeased(wait), nil
	}
	if hold, err := h.held(ctx, in, s); err != nil || hold.State != "" {
		return hold, err
	}
	ready.pass, ready.dbNow, ready.loaded = pass, s.Now, loaded
	return h.take(ctx, s, ready)
}

// inspect settles what the row and the hook's settings decide on their own, in
// Phorge's order, and prepares the call where they leave it open.
func (h *Herald) inspect(ctx context.Context, s herald.Snapshot) (*held, ClaimResult, error) {
	r := s.Request
	if r.Status != herald.StatusQueued {
		h.sightings.forget(r.ID)
		return nil, finished(r), nil
	}
	if s.Hook == nil {
		return nil, untouched("The hook's row is gone."), nil
	}
	p, err := herald.ParseProperties(r.Properties)
	if err != nil {
		return nil, untouched(err.Error()), nil
	}
	target, flaw := h.settings(s.Hook)
	if flaw != "" {
		end, err := h.misconfigured(ctx, s, p, flaw)
		return nil, end, err
	}
	transactions, end, err := h.transactions(ctx, s, p)
	if err != nil || end.State != "" {
		return nil, end, err
	}
	if len(s.Hook.HMACKey) == 0 {
		return nil, untouched("The hook has no HMAC key."), nil
	}
	body := herald.Document(r, p, transactions)
	return &held{request: r, properties: p, call: Call{
		Target: target, Body: body, Signature: signature.Phorge(s.Hook.HMACKey, body), Timeout: h.Rules.Timeout,
	}}, ClaimResult{}, nil
}

// settings names the flaw in a hook's settings that fails its requests for
// good: Phorge's own word for it.
func (h *Herald) settings(hook *herald.Hook) (herald.Target, string) {
	if hook.Disabled() {
		return herald.Target{}, herald.HookDisabled
	}
	target, err := herald.ParseURI(hook.URI)
	if err != nil {
		return herald.Target{}, herald.HookURI
	}
	return target, ""
}

// misconfigured writes a configuration failure under the same compare-and-set
// as any result: whoever has moved the row since keeps it. While a claim may
// be in flight its own end goes first, or a 2xx could be recorded as a failure.
func (h *Herald) misconfigured(ctx context.Context, s herald.Snapshot, p herald.Properties, flaw string) (ClaimResult, error) {
	r := s.Request
	if wait := h.leased(s); wait > 0 {
		return stillLeased(wait), nil
	}
	v := herald.HookFailure(flaw)
	out, err := h.Rows.Finish(ctx, herald.ResultWrite{
		Claim: herald.Claim{ID: r.ID, Version: r.Modified}, Verdict: v,
		Properties: p.WithError(v.ErrorType, v.Code), Epoch: herald.EpochNone,
	})
	switch {
	case err != nil:
		return ClaimResult{}, err
	case out != herald.Written:
		return ClaimResult{State: Lost, Reason: "Another writer was faster."}, nil
	}
	h.sightings.forget(r.ID)
	h.Meter.Attempt("config", 0)
	h.Log.Info("request failed by its hook's settings", zap.String("request", r.PHID), zap.String("hook", r.HookPHID),
		zap.String("error_type", string(v.ErrorType)), zap.String("error_code", v.Code.String()))
	return ClaimResult{State: Misconfigured, Reason: flawText[flaw], Row: rowEnd(v)}, nil
}

// flawText says a hook error in words; the row has Phorge's code for it.
var flawText = map[string]string{
	herald.HookDisabled: "The hook is disabled.",
	herald.HookURI:      "The hook's URI is not one that may be called.",
	herald.HookObject:   "The object that the request is about does not exist.",
}

// leased says how long somebody's claim on the row must still be respected: by
// the database's clock and by how long this process has seen it.
func (h *Herald) leased(s herald.Snapshot) time.Duration {
	r := s.Request
	if !r.Claimed() {
		h.sightings.forget(r.ID)
		return 0
	}
	age, void := h.sightings.age(r.ID, r.Modified, h.Clock())
	if void {
		return 0
	}
	byDatabase := time.Duration(r.Modified-s.Now)*time.Second + h.Rules.Lease
	return max(byDatabase, h.Rules.Lease-age, 0)
}

// held says what holds the hook or the row back for now.
func (h *Herald) held(ctx context.Context, in ClaimInput, s herald.Snapshot) (ClaimResult, error) {
	p, err := h.Pauses.Paused(ctx, in.HookPHID)
	if err != nil {
		return ClaimResult{}, err
	}
	if p != nil {
		return ClaimResult{State: Paused, Reason: fmt.Sprintf("Paused by %s: %s", p.By, p.Reason)}, nil
	}
	if wait := h.breaker(in.HookPHID, s); wait > 0 {
		return ClaimResult{State: BreakerOpen, Wait: wait, Reason: "Too many of the hook's requests failed lately."}, nil
	}
	rest := time.Duration(s.Request.LastEpoch-s.Now)*time.Second + h.Rules.Backoff
	if s.Request.LastResult == herald.ResultFail && rest > 0 && !in.Now {
		return ClaimResult{State: Resting, Wait: rest, Reason: "The last attempt failed a short while ago."}, nil
	}
	return ClaimResult{}, nil
}

// breaker is Phorge's error backoff: open while the threshold-th newest failed
// row lies within the window. Opening and closing are logged once each.
func (h *Herald) breaker(hookPHID string, s herald.Snapshot) time.Duration {
	wait := time.Duration(s.ThresholdFailure-s.Now)*time.Second + h.Rules.BreakerWindow + time.Second
	if s.ThresholdFailure == 0 || wait <= 0 {
		if _, was := h.breakers.LoadAndDelete(hookPHID); was {
			h.Log.Info("breaker closed: the hook is called again", zap.String("hook", hookPHID))
		}
		return 0
	}
	if _, was := h.breakers.LoadOrStore(hookPHID, struct{}{}); !was {
		h.Log.Warn("breaker open: too many of the hook's requests failed, nothing is sent to it for now",
			zap.String("hook", hookPHID), zap.Duration("wait", wait))
	}
	return wait
}

// OpenBreakers counts the hooks whose breaker this process has found open.
func (h *Herald) OpenBreakers() int {
	n := 0
	h.breakers.Range(func(any, any) bool { n++; return true })
	return n
}

// take makes the claim and keeps it for Send.
func (h *Herald) take(ctx context.Context, s herald.Snapshot, ready *held) (ClaimResult, error) {
	ready.begun = h.Clock()
	c, ok, err := h.Rows.Claim(ctx, s.Request.ID, s.Request.Modified, ready.pass.Lock)
	switch {
	case errors.Is(err, herald.ErrUnclaimable):
		return untouched(err.Error()), nil
	case err != nil:
		return ClaimResult{}, err
	case !ok:
		return ClaimResult{State: Lost, Reason: "Another claim was faster."}, nil
	}
	h.sightings.forget(s.Request.ID)
	ready.claim = c
	life := h.Rules.Lease - h.Rules.Timeout - h.Rules.Allowance - h.Clock().Sub(ready.begun)
	h.claims.put(s.Request.PHID, ready, life, func() { h.drop(s.Request, ready) })
	return won(ready), nil
}

// drop gives up a claim that nobody used in time.
func (h *Herald) drop(r herald.Request, c *held) {
	h.sightings.void(c.claim)
	c.pass.Done(0)
	h.Gate.Ended(Ended{Ref: Ref{ID: r.ID, PHID: r.PHID, HookPHID: r.HookPHID}, State: Lost})
}

func won(c *held) ClaimResult {
	return ClaimResult{State: Won, Version: c.claim.Version, Queue: c.pass.Queue, Fast: c.pass.Fast}
}

func stillLeased(wait time.Duration) ClaimResult {
	return ClaimResult{State: Leased, Wait: wait, Reason: "An earlier claim may still be sending; its lease is not over."}
}

func untouched(reason string) ClaimResult { return ClaimResult{State: Untouched, Reason: reason} }

// finished reports how the row stands, from the row.
func finished(r herald.Request) ClaimResult {
	end := &RowEnd{Status: r.Status, Result: r.LastResult}
	return ClaimResult{State: Finished, Reason: "The request is " + string(r.Status) + " already.", Row: end}
}

func rowEnd(v herald.Verdict) *RowEnd {
	return &RowEnd{Status: v.Status, Result: v.Result, ErrorType: string(v.ErrorType), ErrorCode: v.Code.String()}
}
