package activities

import (
	"context"
	"time"

	"go.uber.org/zap"

	"waybill/internal/herald"
)

// The tries of a process to write a result that it knows: soon, because most
// writes fail over a connection, then ever further apart.
const (
	rewriteAfter = 50 * time.Millisecond
	rewriteMost  = 2 * time.Second
)

// leave ends an attempt: at once when its result stands, else when it does.
func (h *Herald) leave(a *attempt) {
	if a.unwritten {
		go h.settle(a)
		return
	}
	h.done(a)
}

func (h *Herald) done(a *attempt) {
	took := a.reply.Took
	if a.reply.Aborted {
		// Says how patient we were, not how fast the receiver is.
		took = 0
	}
	a.claim.pass.Done(took)
	h.Gate.Ended(Ended{Ref: a.in.Ref, State: Won})
}

// settle holds the hook's slot until a known result stands in its row, and
// tries to write it meanwhile, beside the WriteBack that travels through
// Temporal. Without the hold the lock could be handed over while the row still
// says queued, and Phorge, or this process after the lease, would send it
// again. Losing the hook does not end it: the fence protects whoever has the
// hook by then.
func (h *Herald) settle(a *attempt) {
	h.Meter.WriteBacksWaiting(1)
	defer h.Meter.WriteBacksWaiting(-1)
	defer h.done(a)
	for rest := rewriteAfter; ; rest = min(2*rest, rewriteMost) {
		<-time.After(rest)
		if out, stands, err := h.write(context.Background(), a.in.Ref, a.result()); err == nil {
			a.stands = stands
			h.logSettled(a, out)
			return
		}
	}
}

func (h *Herald) logSettled(a *attempt, out herald.WriteOutcome) {
	level := zap.InfoLevel
	if out == herald.Fenced {
		level = zap.WarnLevel // a known result is nowhere but in this line
	}
	h.Log.Log(level, "late result settled", zap.String("request", a.in.PHID), zap.String("hook", a.in.HookPHID),
		zap.Int("attempt", a.in.Attempt), zap.Int64("version", a.in.Version), zap.String("outcome", string(out)),
		zap.String("verdict", a.verdict.Ending().String()), zap.String("stands", a.stands))
}
