package activities

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"waybill/internal/herald"
	"waybill/internal/signature"
)

// inspect settles what the row and the hook's settings decide on their own, in
// Phorge's order, and prepares the call where they leave it open: exactly one
// of the first two results is set.
func (h *Herald) inspect(ctx context.Context, s herald.Snapshot) (*held, ClaimResult, error) {
	r := s.Request
	if r.Status != herald.StatusQueued {
		h.Witness.Found(s)
		return nil, finished(r), nil
	}
	if s.Hook == nil {
		return nil, h.untouched(r, "The hook's row is gone."), nil
	}
	p, err := herald.ParseProperties(r.Properties)
	if err != nil {
		return nil, h.untouched(r, err.Error()), nil
	}
	target, flaw := settings(s.Hook)
	if flaw != "" {
		end, err := h.misconfigured(ctx, s, p, flaw)
		return nil, end, err
	}
	transactions, end, err := h.transactions(ctx, s, p)
	if err != nil || end.State != "" {
		return nil, end, err
	}
	if len(s.Hook.HMACKey) == 0 {
		return nil, h.untouched(r, "The hook has no HMAC key."), nil
	}
	body := herald.Document(r, p, transactions)
	return &held{properties: p, before: r.LastEpoch, call: Call{
		Target: target, Body: body, Signature: signature.Phorge(s.Hook.HMACKey, body), Timeout: h.Rules.Timeout,
	}}, ClaimResult{}, nil
}

// settings names the flaw in a hook's settings that fails its requests for
// good: Phorge's own word for it.
func settings(hook *herald.Hook) (herald.Target, string) {
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
	if end := h.leased(s, time.Time{}); end.State != "" {
		return end, nil
	}
	v := herald.HookFailure(flaw)
	ref := Ref{ID: r.ID, PHID: r.PHID, HookPHID: r.HookPHID}
	out, _, err := h.finish(ctx, ref, herald.ResultWrite{
		Claim: herald.Claim{ID: r.ID, Version: r.Modified}, Verdict: v,
		Properties: p.WithError(v.ErrorType, v.Code), Epoch: herald.EpochNone, Before: r.LastEpoch,
	})
	switch {
	case errors.Is(err, herald.ErrUnclaimable):
		return h.untouched(r, err.Error()), nil
	case err != nil:
		return ClaimResult{}, err
	case out == herald.Collected:
		return collected(), nil
	case out != herald.Written:
		return lost("Another writer was faster."), nil
	}
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

// untouched leaves a row as it is, and tells people about it once per version:
// the sweep comes back to it as long as it stays in the queue.
func (h *Herald) untouched(r herald.Request, reason string) ClaimResult {
	if h.reports.first(r.ID, r.Modified) {
		h.Meter.Claim(Untouched)
		h.Log.Warn("request cannot be processed and stays in the queue as it is",
			zap.Uint64("id", r.ID), zap.String("request", r.PHID), zap.String("hook", r.HookPHID),
			zap.Int64("version", r.Modified), zap.String("reason", reason))
	}
	return ClaimResult{State: Untouched, Reason: reason}
}

// finished reports how the row stands, from the row.
func finished(r herald.Request) ClaimResult {
	end := &RowEnd{Status: r.Status, Result: r.LastResult}
	return ClaimResult{State: Finished, Reason: "The request is " + string(r.Status) + " already.", Row: end}
}

func rowEnd(v herald.Verdict) *RowEnd {
	return &RowEnd{Status: v.Status, Result: v.Result, ErrorType: string(v.ErrorType), ErrorCode: v.Code.String()}
}
