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
	Recovering = "recovering" // the first call for each row is 500
	Reset      = "reset"      // the connection is reset instead of an answer
)

// Behaviours says of each behaviour whether a row that is tried forever is
// delivered in the end.
func Behaviours() map[string]bool {
	return map[string]bool{
		Fast: true, Slow: true, Flapping: true, Recovering: true,
		Hang: false, Failing: false, Reset: false,
	}
}

// slowFor is what a busy application takes, and keeps a hook of a hundred rows
// at work for half a minute.
const slowFor = 300 * time.Millisecond

// turn counts calls up to this one: for its row and for its hook.
type turn struct{ row, hook int }

// answer lets the time pass that a behaviour takes and returns the status, 0
// for none.
func (w *Witness) answer(ctx context.Context, behaviour string, nth turn) int {
	switch behaviour {
	case Slow:
		return w.after(ctx, slowFor, 200)
	case Hang:
		return w.after(ctx, time.Hour, 0)
	case Failing:
		return 500
	case Flapping:
		return either(nth.hook%2 == 1, 500)
	case Recovering:
		return either(nth.row == 1, 500)
	case Reset:
		return 0
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
