package scenario

import (
	"context"
	"time"
)

// The behaviours of a Witness's hooks.
const (
	Fast       = "fast"       // success at once
	Slow       = "slow"       // success after slowFor
	Hang       = "hang"       // no answer until the caller gives up
	Failing    = "failing"    // 500, always
	Flapping   = "flapping"   // every other call of the hook is 500
	Bursting   = "bursting"   // burst calls of the hook in a row are 503, then as many are not
	Recovering = "recovering" // the first call for each row is 500
	Faltering  = "faltering"  // the same, and each takes slowFor
	Hanging    = "hanging"    // the first call for each row has no answer
	Reset      = "reset"      // the connection is reset instead of an answer
	Breaking   = "breaking"   // the same, at the first call for each row
	Halving    = "halving"    // the first call for each row has half an answer
	Slamming   = "slamming"   // every other connection is reset before its body is read
)

// Behaviours says of each behaviour whether a row that is tried forever is
// delivered in the end.
func Behaviours() map[string]bool {
	return map[string]bool{
		Fast: true, Slow: true, Flapping: true, Bursting: true, Recovering: true, Faltering: true, Hanging: true,
		Breaking: true, Halving: true, Slamming: true,
		Hang: false, Failing: false, Reset: false,
	}
}

// slowFor is what a busy application takes, and keeps a hook of a hundred rows
// at work for half a minute.
const slowFor = 300 * time.Millisecond

// burst is below the breaker's usual threshold of ten.
const burst = 6

// turn counts calls up to this one: for its row and for its hook.
type turn struct{ row, hook int }

// half is the status of an answer that breaks off: it says 200 and promises
// more than comes.
const half = -1

// answer lets the time pass that a behaviour takes and returns the status, 0
// for none.
func (w *Witness) answer(ctx context.Context, behaviour string, nth turn) int {
	first := nth.row == 1
	switch behaviour {
	case Slow:
		return w.after(ctx, slowFor, 200)
	case Hang:
		return w.after(ctx, time.Hour, 0)
	case Hanging:
		if first {
			return w.after(ctx, time.Hour, 0)
		}
	case Faltering:
		return w.after(ctx, slowFor, either(first, 500))
	case Failing:
		return 500
	case Flapping:
		return either(nth.hook%2 == 1, 500)
	case Bursting:
		return either(nth.hook/burst%2 == 1, 503)
	case Recovering:
		return either(first, 500)
	case Reset:
		return 0
	case Breaking:
		return either(first, 0)
	case Halving:
		return either(first, half)
	}
	return 200
}

// either is the status when bad, else success.
func either(bad bool, status int) int {
	if bad {
		return status
	}
	return 200
}

// after waits and returns status, or 0 when the caller leaves before that.
func (w *Witness) after(ctx context.Context, d time.Duration, status int) int {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return status
	case <-ctx.Done():
	case <-w.closed:
	}
	return 0
}
