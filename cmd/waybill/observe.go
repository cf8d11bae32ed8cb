package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"waybill/internal/herald"
	"waybill/internal/telemetry"
	"waybill/worker"
)

// backlogFresh keeps scrapes from counting the whole table each time.
const backlogFresh = 15 * time.Second

// checks are what readiness looks at once the lane runs.
func (l *heraldLane) checks(temporal client.Client) []check {
	return []check{
		{"Waybill's own database cannot be read", l.ledger.Ping},
		{"Phorge's database cannot be read", l.rows.Ping},
		{"Temporal does not answer", func(ctx context.Context) error {
			_, err := temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
			return err
		}},
	}
}

// locks is the check that only a process that owns hooks makes.
func locks(own *worker.Ownership) check {
	return check{"The locks of hooks cannot be held", func(context.Context) error {
		if p := own.Problem(); p != "" {
			return errors.New(p)
		}
		return nil
	}}
}

// observe lets scrapes see the queue and the hooks.
func (l *heraldLane) observe(own *worker.Ownership) (stop func(), err error) {
	queue, err := l.meter.ObserveQueue(l.backlog())
	if err != nil {
		return nil, err
	}
	hooks, err := l.meter.ObserveHooks(func(ctx context.Context) (telemetry.Hooks, error) {
		pauses, err := l.ledger.Pauses(ctx)
		return standings(pauses, int64(own.Owned()), int64(l.openBreakers())), err
	})
	if err != nil {
		queue()
		return nil, err
	}
	return func() { queue(); hooks() }, nil
}

// standings counts pauses and releases. One of all hooks counts as one.
func standings(pauses []herald.Pause, owned, breaker int64) telemetry.Hooks {
	h := telemetry.Hooks{Owned: owned, Breaker: breaker}
	for _, p := range pauses {
		if p.Released {
			h.Released++
		} else {
			h.Paused++
		}
		h.Silenced = h.Silenced || worker.HoldsForSilence(p)
	}
	return h
}

// backlog counts the queue at most every backlogFresh.
func (l *heraldLane) backlog() func(context.Context) (telemetry.Queue, error) {
	var mu sync.Mutex
	var at time.Time
	var last telemetry.Queue
	return func(ctx context.Context) (telemetry.Queue, error) {
		mu.Lock()
		defer mu.Unlock()
		if now := l.now(); at.IsZero() || now.Sub(at) >= backlogFresh {
			rows, oldest, err := l.rows.Backlog(ctx)
			if err != nil {
				return telemetry.Queue{}, err
			}
			last, at = telemetry.Queue{Rows: rows, Oldest: oldest}, now
		}
		return last, nil
	}
}
