package activities

import (
	"context"
	"errors"

	"waybill/internal/herald"
)

// WriteBack writes a result whose first write failed. It is tried without end,
// needs no ownership and no slot, only the fence: any process may run it.
func (h *Herald) WriteBack(ctx context.Context, in WriteBackInput) (WriteBackResult, error) {
	s, err := h.Rows.Load(ctx, in.ID)
	if errors.Is(err, herald.ErrGone) {
		return h.wroteBack(herald.Collected), nil
	}
	if err != nil {
		return WriteBackResult{}, err
	}
	p, err := herald.ParseProperties(s.Request.Properties)
	if err != nil {
		// Only another writer can have put this there, and theirs stands.
		return h.wroteBack(herald.Fenced), nil
	}
	out, err := h.Rows.Finish(ctx, herald.ResultWrite{
		Claim:      herald.Claim{ID: in.ID, Version: in.Version},
		Verdict:    in.Verdict,
		Properties: p.WithError(in.Verdict.ErrorType, in.Verdict.Code),
		Epoch:      in.Completed,
	})
	if err != nil {
		return WriteBackResult{}, err
	}
	return h.wroteBack(out), nil
}

func (h *Herald) wroteBack(out herald.WriteOutcome) WriteBackResult {
	h.Meter.WriteBacksWaiting(-1)
	return WriteBackResult{Outcome: out}
}
