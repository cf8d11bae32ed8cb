package telemetry

import "go.opentelemetry.io/otel/metric"

// form is what an instrument measures with.
type form int

const (
	counter form = iota
	histogram
	upDown
	gauge     // observed at every scrape
	gaugeReal // the same, with fractions
)

// instrument is one line of the table of instruments. Names follow
// OpenTelemetry's conventions (dots, no unit in the name); Prometheus shows
// waybill.herald.claims as waybill_herald_claims_total.
type instrument struct {
	name, unit, help string
	form             form
}

// The instruments of the Herald lane; the documentation's table is this one.
var (
	claims = instrument{"waybill.herald.claims", "{claim}",
		"Claims by result: won, lost (another was faster or the row changed), deferred (not now).", counter}
	attempts = instrument{"waybill.herald.attempts", "{attempt}",
		"Finished attempts by outcome: ok, http_error, timeout, transport, config, unknown.", counter}
	attemptDuration = instrument{"waybill.herald.attempt.duration", "s",
		"Time of one attempt from before the dial to its outcome.", histogram}
	inFlight = instrument{"waybill.herald.in_flight", "{attempt}",
		"Attempts under way in this process.", upDown}
	writeBacks = instrument{"waybill.herald.write_backs_waiting", "{write}",
		"Known results that have not reached their row yet.", upDown}
	unprocessable = instrument{"waybill.herald.unprocessable", "{row}",
		"Rows found that cannot be processed, each version of a row once.", counter}
	overwritten = instrument{"waybill.herald.overwritten", "{row}",
		"Rows that Waybill had finished and that said something else a little later.", counter}
	queued = instrument{"waybill.herald.queued", "{row}",
		"Rows that wait in Phorge's queue.", gauge}
	oldestQueued = instrument{"waybill.herald.oldest_queued.age", "s",
		"Age of the oldest row that waits, by the database's clock.", gaugeReal}
	hooks = instrument{"waybill.herald.hooks", "{hook}",
		"Hooks by state: paused, released (to Phorge), breaker, owned (by this process).", gauge}
	silenceHold = instrument{"waybill.herald.silence.hold", "{hold}",
		"1 while all hooks are paused because Phorge's site is silent, else 0.", gauge}
	ownershipChanges = instrument{"waybill.herald.ownership.changes", "{hook}",
		"Hooks by what became of their ownership: taken, released (handed over), lost (with the lock session).", counter}
	observeFailures = instrument{"waybill.herald.observation.failures", "{failure}",
		"Scrapes for which a gauge could not be read and was left out.", counter}
)

// attemptBuckets cover a local receiver (milliseconds) up to the longest
// delivery timeout that the configuration admits (5 minutes).
var attemptBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30, 60, 300}

// maker makes instruments and keeps the first error, so that the caller can
// write the list down without a check between its lines.
type maker struct {
	meter metric.Meter
	err   error
}

func (m *maker) counter(i instrument) metric.Int64Counter {
	made, err := m.meter.Int64Counter(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.help))
	m.keep(err)
	return made
}

func (m *maker) upDown(i instrument) metric.Int64UpDownCounter {
	made, err := m.meter.Int64UpDownCounter(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.help))
	m.keep(err)
	return made
}

func (m *maker) histogram(i instrument, buckets []float64) metric.Float64Histogram {
	made, err := m.meter.Float64Histogram(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.help),
		metric.WithExplicitBucketBoundaries(buckets...))
	m.keep(err)
	return made
}

func (m *maker) gauge(i instrument) metric.Int64ObservableGauge {
	made, err := m.meter.Int64ObservableGauge(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.help))
	m.keep(err)
	return made
}

func (m *maker) gaugeReal(i instrument) metric.Float64ObservableGauge {
	made, err := m.meter.Float64ObservableGauge(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.help))
	m.keep(err)
	return made
}

func (m *maker) keep(err error) {
	if m.err == nil {
		m.err = err
	}
}
