package telemetry

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
	"go.uber.org/zap"
)

// The variables that turn tracing on and choose its protocol are OpenTelemetry's
// own (specification: SDK environment variables), as are those that the exporter
// and the sampler read themselves.
const (
	variableExporter       = "OTEL_TRACES_EXPORTER"
	variableProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	variableTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
)

// Tracing exports spans over OTLP. A nil *Tracing is one that is switched off: it
// makes no spans and costs nothing.
type Tracing struct{ provider *sdktrace.TracerProvider }

// NewTracing reads OpenTelemetry's environment variables; with OTEL_TRACES_EXPORTER
// other than "otlp" it returns nil. A collector that is away is no error: the log
// says so once, and spans are dropped.
func NewTracing(ctx context.Context, getenv func(string) string, version string, logger *zap.Logger) (*Tracing, error) {
	switch exporter := getenv(variableExporter); exporter {
	case "", "none":
		return nil, nil
	case "otlp":
	default:
		return nil, fmt.Errorf("%s is %q: it takes otlp or none", variableExporter, exporter)
	}
	exporter, err := newExporter(ctx, getenv)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	what, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "waybill"), attribute.String("service.version", version),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("tracing: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	var told atomic.Bool
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		if told.CompareAndSwap(false, true) {
			logger.Warn("traces cannot be exported, deliveries go on without", zap.Error(err))
		}
	}))
	return &Tracing{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(what))}, nil
}

func newExporter(ctx context.Context, getenv func(string) string) (*otlptrace.Exporter, error) {
	name := variableTracesProtocol
	protocol := getenv(name)
	if protocol == "" {
		name = variableProtocol
		protocol = getenv(name)
	}
	switch protocol {
	case "", "http/protobuf":
		return otlptracehttp.New(ctx)
	case "grpc":
		return otlptracegrpc.New(ctx)
	}
	return nil, fmt.Errorf("%s is %q: it takes http/protobuf or grpc", name, protocol)
}

// Tracer makes spans; the name says which part of Waybill does.
func (t *Tracing) Tracer(name string) trace.Tracer {
	if t == nil {
		return noop.NewTracerProvider().Tracer(name)
	}
	return t.provider.Tracer(name)
}

// Interceptors make the Temporal SDK carry traces from a start through its
// workflow into activities. Queries are no part of a delivery.
func (t *Tracing) Interceptors() ([]interceptor.ClientInterceptor, error) {
	if t == nil {
		return nil, nil
	}
	i, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
		Tracer: t.provider.Tracer("temporal-sdk-go"), DisableQueryTracing: true,
	})
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	return []interceptor.ClientInterceptor{i}, nil
}

// Shutdown exports what is left, as long as ctx allows.
func (t *Tracing) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}
