package activities

import (
	"time"

	"go.uber.org/zap"

	"waybill/internal/herald"
)

// breaker is Phorge's error backoff (herald.Snapshot.BreakerWait). Opening and
// closing are logged once each by every process that meets them: one that has
// lost the hook meanwhile speaks of the failures that it has seen.
func (h *Herald) breaker(hookPHID string, s herald.Snapshot) time.Duration {
	wait := s.BreakerWait(h.Rules.BreakerWindow)
	if wait == 0 {
		h.closed(hookPHID)
		return 0
	}
	if _, was := h.breakers.Swap(hookPHID, h.Clock().Add(wait)); !was {
		time.AfterFunc(wait, func() { h.slid(hookPHID) })
		h.Log.Warn("breaker open: too many of the hook's requests failed, nothing is sent to it for now",
			zap.String("hook", hookPHID), zap.Duration("wait", wait))
	}
	return wait
}

// slid closes a breaker whose window has slid while nobody asked, and comes back
// later where others have added failures meanwhile.
func (h *Herald) slid(hookPHID string) {
	until, open := h.breakers.Load(hookPHID)
	if !open {
		return
	}
	if left := until.(time.Time).Sub(h.Clock()); left > 0 {
		time.AfterFunc(left, func() { h.slid(hookPHID) })
		return
	}
	h.closed(hookPHID)
}

func (h *Herald) closed(hookPHID string) {
	if _, was := h.breakers.LoadAndDelete(hookPHID); was {
		h.Log.Info("breaker closed: the hook's failures lie back far enough", zap.String("hook", hookPHID))
	}
}

// OpenBreakers counts the hooks whose breaker this process has found open and
// whose window has not slid since, whether or not anybody has asked again.
func (h *Herald) OpenBreakers() int {
	n, now := 0, h.Clock()
	h.breakers.Range(func(_, until any) bool {
		if now.Before(until.(time.Time)) {
			n++
		}
		return true
	})
	return n
}
