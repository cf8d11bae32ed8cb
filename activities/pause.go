package activities

import (
	"context"

	"waybill/internal/herald"
)

// Pause keeps an operator's pause of a hook, or its release to Phorge, and
// returns what stands then.
func (h *Herald) Pause(ctx context.Context, p herald.Pause) (*herald.Pause, error) {
	if err := h.Pauses.SetPause(ctx, p); err != nil {
		return nil, err
	}
	return h.ordered(ctx, p.HookPHID)
}

// Resume ends the pause or release of a hook that is known, nil for whichever
// there is, and returns what stands then.
func (h *Herald) Resume(ctx context.Context, hookPHID string, known *herald.Pause) (*herald.Pause, error) {
	if known == nil {
		found, err := h.ordered(ctx, hookPHID)
		if found == nil || err != nil {
			return nil, err
		}
		known = found
	}
	if err := h.Pauses.EndPause(ctx, *known); err != nil {
		return nil, err
	}
	return h.ordered(ctx, hookPHID)
}

// ordered is the hook's own pause or release.
func (h *Herald) ordered(ctx context.Context, hookPHID string) (*herald.Pause, error) {
	p, err := h.Pauses.Paused(ctx, hookPHID)
	if err != nil || p == nil || p.HookPHID != hookPHID {
		return nil, err
	}
	return p, nil
}

// Paused reads a hook's pause or release, nil when there is none.
func (h *Herald) Paused(ctx context.Context, hookPHID string) (*herald.Pause, error) {
	return h.Pauses.Paused(ctx, hookPHID)
}
