package telemetry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// bench is a provider with the Herald lane's instruments.
type bench struct {
	*Provider
	*Herald
}

func newBench(t *testing.T) bench {
	t.Helper()
	provider, err := NewProvider(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	lane, err := NewHerald(provider.Meter("waybill/herald"))
	if err != nil {
		t.Fatal(err)
	}
	return bench{provider, lane}
}

// scrape returns the metrics as Prometheus would see them.
func (b bench) scrape(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	b.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// wantLines checks that each line occurs.
func wantLines(t *testing.T, scraped string, want ...string) {
	t.Helper()
	for _, line := range want {
		if !strings.Contains(scraped, line+"\n") {
			t.Errorf("no line %q in\n%s", line, waybillOnly(scraped))
		}
	}
}

func waybillOnly(scraped string) string {
	var b strings.Builder
	for line := range strings.Lines(scraped) {
		if strings.HasPrefix(line, "waybill_") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestSeriesExistFromTheStart(t *testing.T) {
	scraped := newBench(t).scrape(t)
	wantLines(t, scraped,
		`waybill_herald_claims_total{result="won"} 0`,
		`waybill_herald_claims_total{result="lost"} 0`,
		`waybill_herald_claims_total{result="deferred"} 0`,
		`waybill_herald_attempts_total{outcome="ok"} 0`,
		`waybill_herald_attempts_total{outcome="http_error"} 0`,
		`waybill_herald_attempts_total{outcome="timeout"} 0`,
		`waybill_herald_attempts_total{outcome="transport"} 0`,
		`waybill_herald_attempts_total{outcome="config"} 0`,
		`waybill_herald_attempts_total{outcome="unknown"} 0`,
		`waybill_herald_in_flight 0`,
		`waybill_herald_write_backs_waiting 0`,
		`waybill_herald_unprocessable_total 0`,
		`waybill_herald_overwritten_total 0`,
		`waybill_herald_ownership_changes_total{change="taken"} 0`,
		`waybill_herald_ownership_changes_total{change="released"} 0`,
		`waybill_herald_ownership_changes_total{change="lost"} 0`,
		`waybill_herald_observation_failures_total{source="queue"} 0`,
		`waybill_herald_observation_failures_total{source="hooks"} 0`)
	if !strings.Contains(scraped, "go_goroutines ") || !strings.Contains(scraped, "process_start_time_seconds ") {
		t.Error("the runtime's metrics are missing")
	}
	if strings.Contains(scraped, "otel_scope") || strings.Contains(scraped, "target_info") {
		t.Error("constant labels are back")
	}
}

func TestRecording(t *testing.T) {
	b, ctx := newBench(t), context.Background()
	b.Claim(ctx, ClaimWon)
	b.Claim(ctx, ClaimWon)
	b.Claim(ctx, ClaimLost)
	b.Claim(ctx, ClaimDeferred)
	for _, outcome := range []Outcome{OutcomeOK, OutcomeHTTPError, OutcomeTimeout, OutcomeTransport, OutcomeConfig, OutcomeUnknown} {
		b.Attempt(ctx, outcome, 200*time.Millisecond)
	}
	b.Unprocessable(ctx)
	b.Overwritten(ctx)
	b.Ownership(ctx, OwnershipTaken, 1)
	b.Ownership(ctx, OwnershipLost, 5)
	first, second, write := b.Sending(ctx), b.Sending(ctx), b.WaitingToWrite(ctx)
	wantLines(t, b.scrape(t),
		`waybill_herald_claims_total{result="won"} 2`,
		`waybill_herald_claims_total{result="lost"} 1`,
		`waybill_herald_claims_total{result="deferred"} 1`,
		`waybill_herald_attempts_total{outcome="ok"} 1`,
		`waybill_herald_attempts_total{outcome="config"} 1`,
		`waybill_herald_attempt_duration_seconds_count 5`, // nothing was sent for config
		`waybill_herald_attempt_duration_seconds_bucket{le="0.1"} 0`,
		`waybill_herald_attempt_duration_seconds_bucket{le="0.25"} 5`,
		`waybill_herald_unprocessable_total 1`,
		`waybill_herald_overwritten_total 1`,
		`waybill_herald_ownership_changes_total{change="taken"} 1`,
		`waybill_herald_ownership_changes_total{change="lost"} 5`,
		`waybill_herald_in_flight 2`,
		`waybill_herald_write_backs_waiting 1`)
	first()
	first() // counts once
	write()
	wantLines(t, b.scrape(t), `waybill_herald_in_flight 1`, `waybill_herald_write_backs_waiting 0`)
	second()
	wantLines(t, b.scrape(t), `waybill_herald_in_flight 0`)
}

func TestObservedGauges(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	var failing error
	stopQueue, err := b.ObserveQueue(func(ctx context.Context) (Queue, error) {
		mu.Lock()
		defer mu.Unlock()
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("a source is asked without a deadline")
		}
		return Queue{Rows: 300_000, Oldest: 1500 * time.Millisecond}, failing
	})
	if err != nil {
		t.Fatal(err)
	}
	stopHooks, err := b.ObserveHooks(func(context.Context) (Hooks, error) {
		mu.Lock()
		defer mu.Unlock()
		return Hooks{Paused: 1, Breaker: 2, Owned: 3, Released: 4, Silenced: true}, failing
	})
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, b.scrape(t),
		`waybill_herald_queued 300000`,
		`waybill_herald_oldest_queued_age_seconds 1.5`,
		`waybill_herald_hooks{state="paused"} 1`,
		`waybill_herald_hooks{state="breaker"} 2`,
		`waybill_herald_hooks{state="owned"} 3`,
		`waybill_herald_hooks{state="released"} 4`,
		`waybill_herald_silence_hold 1`)

	mu.Lock()
	failing = errors.New("dial tcp 10.0.0.9:3306: secret")
	mu.Unlock()
	b.scrape(t) // the failures counted in this one show in the next
	scraped := b.scrape(t)
	for _, gone := range []string{"\nwaybill_herald_queued ", "\nwaybill_herald_oldest", "\nwaybill_herald_hooks{", "10.0.0.9"} {
		if strings.Contains(scraped, gone) {
			t.Errorf("a failing source still shows %q", gone)
		}
	}
	if !regexp.MustCompile(`observation_failures_total{source="queue"} [12]\n`).MatchString(scraped) {
		t.Errorf("failures are not counted:\n%s", waybillOnly(scraped))
	}

	mu.Lock()
	failing = nil
	mu.Unlock()
	stopQueue()
	stopHooks()
	if strings.Contains(b.scrape(t), "\nwaybill_herald_queued ") {
		t.Error("a stopped observation goes on")
	}
}

// TestNoLabelPerHook reads every label that Waybill's series carry.
func TestNoLabelPerHook(t *testing.T) {
	b := newBench(t)
	if _, err := b.ObserveHooks(func(context.Context) (Hooks, error) { return Hooks{}, nil }); err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{"result": true, "outcome": true, "state": true, "source": true, "change": true, "le": true}
	for _, match := range regexp.MustCompile(`[{,](\w+)="`).FindAllStringSubmatch(waybillOnly(b.scrape(t)), -1) {
		if !allowed[match[1]] {
			t.Errorf("label %q", match[1])
		}
	}
}

func TestNamesFollowConventions(t *testing.T) {
	for _, i := range []instrument{claims, attempts, attemptDuration, inFlight, writeBacks, unprocessable, overwritten, queued, oldestQueued, hooks, silenceHold, ownershipChanges, observeFailures} {
		if !regexp.MustCompile(`^waybill\.herald(\.[a-z]+(_[a-z]+)*)+$`).MatchString(i.name) {
			t.Errorf("name %q", i.name)
		}
		if i.unit != "s" && !regexp.MustCompile(`^\{[a-z]+\}$`).MatchString(i.unit) {
			t.Errorf("%s: unit %q", i.name, i.unit)
		}
		if !strings.HasSuffix(i.help, ".") {
			t.Errorf("%s: help %q", i.name, i.help)
		}
	}
}

func TestNilRecordsNothing(t *testing.T) {
	var none *Herald
	ctx := context.Background()
	none.Claim(ctx, ClaimWon)
	none.Attempt(ctx, OutcomeOK, time.Second)
	none.Unprocessable(ctx)
	none.Overwritten(ctx)
	none.Ownership(ctx, OwnershipTaken, 1)
	none.Sending(ctx)()
	none.WaitingToWrite(ctx)()
}

func TestSDKMetrics(t *testing.T) {
	b := newBench(t)
	sdk := b.SDK().WithTags(map[string]string{"namespace": "default"})
	sdk.Counter("temporal_request").Inc(2)
	sdk.Gauge("temporal_num_pollers").Update(5)
	sdk.Timer("temporal_request_latency").Record(30 * time.Millisecond)
	scraped := b.scrape(t)
	wantLines(t, scraped,
		`temporal_request_total{namespace="default"} 2`,
		`temporal_num_pollers{namespace="default"} 5`)
	if !strings.Contains(scraped, `temporal_request_latency_seconds_bucket{namespace="default",le="0.025"} 0`) ||
		!strings.Contains(scraped, `temporal_request_latency_seconds_bucket{namespace="default",le="0.05"} 1`) {
		t.Errorf("the SDK's timers do not use buckets in seconds:\n%s", scraped)
	}
}

// TestBrokenSDKInstrument: the SDK panics by default on a name it cannot use.
func TestBrokenSDKInstrument(t *testing.T) {
	core, seen := observer.New(zapcore.WarnLevel)
	provider, err := NewProvider(zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	provider.SDK().Counter("0 bad name")
	if seen.Len() != 1 {
		t.Errorf("%d warnings", seen.Len())
	}
}

func TestTwoProvidersLiveTogether(t *testing.T) {
	first, second := newBench(t), newBench(t)
	first.Claim(context.Background(), ClaimWon)
	wantLines(t, second.scrape(t), `waybill_herald_claims_total{result="won"} 0`)
}

func TestAfterShutdown(t *testing.T) {
	b := newBench(t)
	if err := b.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.Claim(context.Background(), ClaimWon)
	b.scrape(t) // neither panics nor fails
}

// brokenMeter refuses whatever is asked of it.
type brokenMeter struct{ noop.Meter }

var errBroken = errors.New("broken")

func (brokenMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errBroken
}

func (brokenMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errBroken
}

func TestBrokenMeter(t *testing.T) {
	if _, err := NewHerald(brokenMeter{}); !errors.Is(err, errBroken) {
		t.Errorf("NewHerald: %v", err)
	}
	lane := &Herald{meter: brokenMeter{}}
	if _, err := lane.ObserveQueue(nil); !errors.Is(err, errBroken) {
		t.Errorf("ObserveQueue: %v", err)
	}
}
