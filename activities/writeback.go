package activities

import (
	"context"
	"errors"

	"waybill/internal/herald"
)

// WriteBack writes a result whose first write failed. It is tried without end,
// needs no ownership and no slot, only the fence: any process may run it. The
// process that sent tries too (see settle); whoever comes second finds the
// result standing.
func (h *Herald) WriteBack(ctx context.Context, in WriteBackInput) (WriteBackResult, error) {
	s, err := h.Rows.Load(ctx, in.ID)
	if errors.Is(err, herald.ErrGone) {
		return WriteBackResult{Outcome: herald.Collected}, nil
	}
	if err != nil {
		return WriteBackResult{}, err
	}
	p, err := herald.ParseProperties(s.Request.Properties)
	if err != nil {
		// Only another writer can have put this there, and theirs stands.
		return WriteBackResult{Outcome: herald.Fenced}, nil //nolint:nilerr // an answer, not a fault
	}
	out, _, err := h.finish(ctx, in.Ref, herald.ResultWrite{
		Claim:      herald.Claim{ID: in.ID, Version: in.Version},
		Verdict:    in.Verdict,
		Properties: p.WithError(in.Verdict.ErrorType, in.Verdict.Code),
		Epoch:      in.Completed,
		Before:     in.Before,
	})
	if err != nil {
		return WriteBackResult{}, err
	}
	return WriteBackResult{Outcome: out}, nil
}
