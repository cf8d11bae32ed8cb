package starter

import (
	"context"
	"time"
)

// Both is the ownership of a process that owns hooks and also feeds those of
// workers without a starter.
type Both struct {
	here  owner
	there *Elsewhere
}

// NewBoth prefers what this process owns itself.
func NewBoth(here owner, there *Elsewhere) *Both { return &Both{here: here, there: there} }

// Ready reports whether some process may send to the hook, or how long until
// this one may.
func (b *Both) Ready(hookPHID string) (wait time.Duration, owned bool) {
	if wait, owned := b.here.Ready(hookPHID); owned {
		return wait, owned
	}
	return b.there.Ready(hookPHID)
}

// Reserve waits for room where the attempt will be made.
func (b *Both) Reserve(ctx context.Context, hookPHID string) (release func(), err error) {
	if b.Watched(hookPHID) {
		return b.there.Reserve(ctx, hookPHID)
	}
	return b.here.Reserve(ctx, hookPHID)
}

// Wake asks this process to look at the hooks now.
func (b *Both) Wake() { b.here.Wake() }

// Watched says whether attempts to the hook end in another process.
func (b *Both) Watched(hookPHID string) bool {
	_, owned := b.here.Ready(hookPHID)
	return !owned
}
