package telemetry

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.uber.org/zap"
)

// Provider owns the metrics of one process: Waybill's, the Temporal SDK's and
// those of the Go runtime, in one registry of its own.
type Provider struct {
	meters   *sdkmetric.MeterProvider
	registry *prometheus.Registry
	logger   *zap.Logger
}

// NewProvider builds the meter provider with its Prometheus exporter. The
// logger hears about instruments that cannot be made.
func NewProvider(logger *zap.Logger) (*Provider, error) {
	registry := prometheus.NewRegistry()
	for _, collector := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("registering runtime metrics: %w", err)
		}
	}
	// Scope and target labels would repeat the same constant on every series.
	exporter, err := otelprometheus.New(
		otelprometheus.WithRegisterer(registry),
		otelprometheus.WithoutScopeInfo(),
		otelprometheus.WithoutTargetInfo(),
	)
	if err != nil {
		return nil, fmt.Errorf("building the Prometheus exporter: %w", err)
	}
	meters := sdkmetric.NewMeterProvider(
		sdkmetric.WithReader(exporter),
		sdkmetric.WithView(sdkLatencies()),
	)
	return &Provider{meters: meters, registry: registry, logger: logger}, nil
}

// sdkLatencies gives the SDK's timers buckets for seconds. OpenTelemetry's
// default buckets are made for milliseconds and would put every latency of
// the SDK, which reports seconds, into the first one.
func sdkLatencies() sdkmetric.View {
	return sdkmetric.NewView(
		sdkmetric.Instrument{Name: "temporal_*", Kind: sdkmetric.InstrumentKindHistogram},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: sdkBuckets}},
	)
}

// sdkBuckets reach from a local activity (about a millisecond) to a workflow
// that waited through an outage of ten minutes.
var sdkBuckets = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 600}

// Handler serves the metrics in Prometheus' text formats. A collector that
// fails leaves its own series out and nothing else.
func (p *Provider) Handler() http.Handler {
	return promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// Meter makes instruments; the name says which part of Waybill asks.
func (p *Provider) Meter(name string) metric.Meter { return p.meters.Meter(name) }

// SDK is the handler through which the Temporal SDK records its own metrics.
// An instrument that cannot be made is logged; the SDK's default is to panic.
func (p *Provider) SDK() client.MetricsHandler {
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter:                p.meters.Meter("temporal-sdk-go"),
		UseMonotonicCounters: true,
		OnError: func(err error) {
			p.logger.Warn("a metric of the Temporal SDK cannot be recorded", zap.Error(err))
		},
	})
}

// Shutdown ends collection; instruments become inert.
func (p *Provider) Shutdown(ctx context.Context) error { return p.meters.Shutdown(ctx) }
