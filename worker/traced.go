package worker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

// Traced makes spans of what an attempt is made of: the claim, the call and the
// write. No span says where a hook's calls go, and no header carries a trace to
// them: Phorge's receivers get what Phorge sends, and nothing else.
type Traced struct{ Tracer trace.Tracer }

// Rows are Phorge's rows with spans around what is written to them.
func (t Traced) Rows(db *heralddb.DB) TracedRows { return TracedRows{db, t.Tracer} }

// Poster is a poster with a span around each call.
func (t Traced) Poster(p Poster) TracedPoster { return TracedPoster{p, t.Tracer} }

// TracedRows are Phorge's rows.
type TracedRows struct {
	*heralddb.DB
	tracer trace.Tracer
}

// Claim makes a span "claim".
func (r TracedRows) Claim(ctx context.Context, id uint64, seen int64, lock herald.Lock) (c herald.Claim, won bool, err error) {
	ctx, span := r.tracer.Start(ctx, "claim")
	defer span.End()
	c, won, err = r.DB.Claim(ctx, id, seen, lock)
	span.SetAttributes(attribute.Bool("waybill.claim.won", won))
	failed(span, err)
	return c, won, err
}

// Finish makes a span "write".
func (r TracedRows) Finish(ctx context.Context, w herald.ResultWrite) (herald.WriteOutcome, error) {
	ctx, span := r.tracer.Start(ctx, "write")
	defer span.End()
	outcome, err := r.DB.Finish(ctx, w)
	span.SetAttributes(attribute.String("waybill.write.outcome", string(outcome)))
	failed(span, err)
	return outcome, err
}

// TracedPoster makes calls.
type TracedPoster struct {
	Poster
	tracer trace.Tracer
}

// Post makes a span "POST", by OpenTelemetry's conventions for HTTP clients as far
// as they say nothing of the receiver.
func (p TracedPoster) Post(ctx context.Context, c activities.Call) activities.Reply {
	ctx, span := p.tracer.Start(ctx, "POST", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("http.request.method", "POST")))
	defer span.End()
	r := p.Poster.Post(ctx, c)
	if r.Answer.HTTPStatus != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", r.Answer.HTTPStatus))
	}
	if r.Fault != "" {
		span.SetAttributes(attribute.String("error.type", r.Fault))
	}
	return r
}

// failed marks a span without the error's words: a driver's may name a server.
func failed(span trace.Span, err error) {
	if err != nil {
		span.SetAttributes(attribute.Bool("error", true))
	}
}
