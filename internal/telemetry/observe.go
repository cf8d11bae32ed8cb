package telemetry

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// The sources whose failures are counted.
const (
	sourceQueue = "queue"
	sourceHooks = "hooks"
)

// Queue is what waits in Phorge's table at one moment.
type Queue struct {
	Rows   int64
	Oldest time.Duration // age of the oldest row; zero without rows
}

// Hooks are counts of hooks by state; one hook may be in several.
type Hooks struct {
	Paused, Released, Breaker, Owned int64
	// Silenced: all are paused because Phorge's site is silent.
	Silenced bool
}

// ObserveQueue lets every scrape ask source for the queue. The source should
// be cheap or cached; it gets four seconds. When it fails the two gauges are
// left out of that scrape, which Prometheus shows as a gap instead of a lie.
// The error stays here: it may name hosts. Stop ends the observation.
func (h *Herald) ObserveQueue(source func(context.Context) (Queue, error)) (stop func(), err error) {
	return h.observe(sourceQueue, func(ctx context.Context, o metric.Observer) error {
		now, err := source(ctx)
		if err != nil {
			return err
		}
		o.ObserveInt64(h.queued, now.Rows)
		o.ObserveFloat64(h.oldest, now.Oldest.Seconds())
		return nil
	}, h.queued, h.oldest)
}

// ObserveHooks does the same for hooks by state.
func (h *Herald) ObserveHooks(source func(context.Context) (Hooks, error)) (stop func(), err error) {
	return h.observe(sourceHooks, func(ctx context.Context, o metric.Observer) error {
		now, err := source(ctx)
		if err != nil {
			return err
		}
		o.ObserveInt64(h.hooks, now.Paused, label("state", "paused"))
		o.ObserveInt64(h.hooks, now.Released, label("state", "released"))
		o.ObserveInt64(h.hooks, now.Breaker, label("state", "breaker"))
		o.ObserveInt64(h.hooks, now.Owned, label("state", "owned"))
		o.ObserveInt64(h.silence, map[bool]int64{true: 1}[now.Silenced])
		return nil
	}, h.hooks, h.silence)
}

// observe registers a callback that swallows its error after counting it: the
// exporter would hand it to OpenTelemetry's global handler, which prints.
func (h *Herald) observe(source string, look metric.Callback, gauges ...metric.Observable) (func(), error) {
	registration, err := h.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		ctx, cancel := context.WithTimeout(ctx, observeTimeout)
		defer cancel()
		if err := look(ctx, o); err != nil {
			h.failures.Add(ctx, 1, label("source", source))
		}
		return nil
	}, gauges...)
	if err != nil {
		return nil, fmt.Errorf("observing the %s: %w", source, err)
	}
	return func() { _ = registration.Unregister() }, nil
}

// held adds one to a level and returns the function that takes it away again.
func held(ctx context.Context, level metric.Int64UpDownCounter) func() {
	level.Add(ctx, 1)
	var once sync.Once
	return func() { once.Do(func() { level.Add(ctx, -1) }) }
}
