package telemetry

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// ClaimResult is how a claim ended.
type ClaimResult string

// The results of a claim.
const (
	ClaimWon      ClaimResult = "won"
	ClaimLost     ClaimResult = "lost"     // another was faster, or the row changed
	ClaimDeferred ClaimResult = "deferred" // admission said not now
)

// Outcome is how an attempt ended.
type Outcome string

// The outcomes of an attempt.
const (
	OutcomeOK        Outcome = "ok"
	OutcomeHTTPError Outcome = "http_error" // an answer other than 2xx
	OutcomeTimeout   Outcome = "timeout"
	OutcomeTransport Outcome = "transport" // no complete answer
	OutcomeConfig    Outcome = "config"    // hook or object at fault, nothing sent
	OutcomeUnknown   Outcome = "unknown"   // nobody knows whether it arrived
)

// OwnershipChange is what became of a hook's lock.
type OwnershipChange string

// The changes of ownership.
const (
	OwnershipTaken    OwnershipChange = "taken"
	OwnershipReleased OwnershipChange = "released" // handed over
	OwnershipLost     OwnershipChange = "lost"     // with the lock session
)

// observeTimeout bounds one look at a gauge's source. Prometheus gives a
// scrape ten seconds by default; two slow sources must fit.
const observeTimeout = 4 * time.Second

// Herald records what the Herald lane does. Its methods may be called from
// any goroutine. A nil *Herald records nothing, for tests of other packages.
type Herald struct {
	meter      metric.Meter
	queued     metric.Int64ObservableGauge
	oldest     metric.Float64ObservableGauge
	hooks      metric.Int64ObservableGauge
	claims     metric.Int64Counter
	attempts   metric.Int64Counter
	failures   metric.Int64Counter
	stuck      metric.Int64Counter
	overwrites metric.Int64Counter
	silence    metric.Int64ObservableGauge
	ownership  metric.Int64Counter
	duration   metric.Float64Histogram
	inFlight   metric.Int64UpDownCounter
	writeBacks metric.Int64UpDownCounter
}

// NewHerald makes the lane's instruments with the given meter, usually
// Provider.Meter("waybill/herald").
func NewHerald(meter metric.Meter) (*Herald, error) {
	m := &maker{meter: meter}
	h := &Herald{
		meter:      meter,
		queued:     m.gauge(queued),
		oldest:     m.gaugeReal(oldestQueued),
		hooks:      m.gauge(hooks),
		claims:     m.counter(claims),
		attempts:   m.counter(attempts),
		failures:   m.counter(observeFailures),
		stuck:      m.counter(unprocessable),
		overwrites: m.counter(overwritten),
		silence:    m.gauge(silenceHold),
		ownership:  m.counter(ownershipChanges),
		duration:   m.histogram(attemptDuration, attemptBuckets),
		inFlight:   m.upDown(inFlight),
		writeBacks: m.upDown(writeBacks),
	}
	if m.err != nil {
		return nil, fmt.Errorf("making the Herald lane's instruments: %w", m.err)
	}
	h.zero()
	return h, nil
}

// zero makes every series exist from the start, because an alert on the
// increase of a counter misses the step from absent to one.
func (h *Herald) zero() {
	ctx := context.Background()
	for _, result := range []ClaimResult{ClaimWon, ClaimLost, ClaimDeferred} {
		h.claims.Add(ctx, 0, label("result", result))
	}
	for _, outcome := range []Outcome{OutcomeOK, OutcomeHTTPError, OutcomeTimeout, OutcomeTransport, OutcomeConfig, OutcomeUnknown} {
		h.attempts.Add(ctx, 0, label("outcome", outcome))
	}
	for _, source := range []string{sourceQueue, sourceHooks} {
		h.failures.Add(ctx, 0, label("source", source))
	}
	for _, change := range []OwnershipChange{OwnershipTaken, OwnershipReleased, OwnershipLost} {
		h.ownership.Add(ctx, 0, label("change", change))
	}
	h.stuck.Add(ctx, 0)
	h.overwrites.Add(ctx, 0)
	h.inFlight.Add(ctx, 0)
	h.writeBacks.Add(ctx, 0)
}

func label[T ~string](key string, value T) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String(key, string(value)))
}

// Claim counts one claim.
func (h *Herald) Claim(ctx context.Context, result ClaimResult) {
	if h == nil {
		return
	}
	h.claims.Add(ctx, 1, label("result", result))
}

// Attempt counts one finished attempt and its duration. One that sent nothing
// (OutcomeConfig) has no duration worth mixing into the receivers'.
func (h *Herald) Attempt(ctx context.Context, outcome Outcome, took time.Duration) {
	if h == nil {
		return
	}
	h.attempts.Add(ctx, 1, label("outcome", outcome))
	if outcome != OutcomeConfig {
		h.duration.Record(ctx, took.Seconds())
	}
}

// Sending counts an attempt as under way until the returned function is
// called; calling that twice counts once.
func (h *Herald) Sending(ctx context.Context) (done func()) {
	if h == nil {
		return func() {}
	}
	return held(context.WithoutCancel(ctx), h.inFlight)
}

// WaitingToWrite counts a result that could not be written until the returned
// function is called.
func (h *Herald) WaitingToWrite(ctx context.Context) (done func()) {
	if h == nil {
		return func() {}
	}
	return held(context.WithoutCancel(ctx), h.writeBacks)
}

// Ownership counts hooks that this process has taken or does not own any more.
func (h *Herald) Ownership(ctx context.Context, change OwnershipChange, hooks int) {
	if h == nil {
		return
	}
	h.ownership.Add(ctx, int64(hooks), label("change", change))
}

// Unprocessable counts a row that was found and cannot be processed.
func (h *Herald) Unprocessable(ctx context.Context) {
	if h == nil {
		return
	}
	h.stuck.Add(ctx, 1)
}

// Overwritten counts a finished row that somebody else has changed since.
func (h *Herald) Overwritten(ctx context.Context) {
	if h == nil {
		return
	}
	h.overwrites.Add(ctx, 1)
}
