package api

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// readTimeout bounds one question to a source. It is detached from the
// request that happened to ask first, because others wait for the same answer.
const readTimeout = 5 * time.Second

// failedFresh is how long a failure is remembered: long enough that a crowd
// of pollers does not batter a database that just came up, short enough that
// nobody notices.
const failedFresh = time.Second

// cached asks a source at most once per fresh period, whatever the number of
// requests, and serves the answer to everybody meanwhile.
type cached[T any] struct {
	now   func() time.Time
	fresh time.Duration
	ask   func(context.Context) (T, error)

	flight singleflight.Group
	mu     sync.Mutex
	answer T
	err    error
	until  time.Time // zero: never asked
	asked  time.Time
}

func newCached[T any](now func() time.Time, fresh time.Duration, ask func(context.Context) (T, error)) *cached[T] {
	return &cached[T]{now: now, fresh: fresh, ask: ask}
}

// get returns the answer of memory or of the source. It gives up waiting when
// ctx ends; the question goes on for whoever asks next.
func (c *cached[T]) get(ctx context.Context) (T, error) {
	if answer, err, ok := c.remembered(); ok {
		return answer, err
	}
	detached := context.WithoutCancel(ctx)
	done := c.flight.DoChan("", func() (any, error) { return nil, c.refresh(detached) })
	select {
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	case result := <-done:
		// A failure is remembered like an answer, but not for a test whose
		// clock jumped in between, nor for a source that panicked.
		if result.Err != nil {
			var none T
			return none, result.Err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.answer, c.err
	}
}

// remembered is the answer in memory while it is fresh. A clock that jumped
// back makes it stale, too.
func (c *cached[T]) remembered() (T, error, bool) { //nolint:revive // answer and error together are what is remembered
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	return c.answer, c.err, now.Before(c.until) && !now.Before(c.asked)
}

// refresh asks the source. A panic there would end the process, for
// singleflight repeats it in a goroutine that nobody can recover in; it counts
// as a failed question.
func (c *cached[T]) refresh(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	defer func() {
		if recover() != nil {
			err = errPanicked
		}
	}()
	answer, failure := c.ask(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer, c.err, c.asked = answer, failure, c.now()
	c.until = c.asked.Add(c.fresh)
	if failure != nil {
		c.until = c.asked.Add(min(c.fresh, failedFresh))
	}
	return nil
}

// errPanicked stands for a source that panicked.
var errPanicked = errors.New("a source of the diagnostics panicked")
