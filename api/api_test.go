package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

const token = "correct-horse-battery-staple"

// ticking is a clock that only moves when told to.
type ticking struct {
	mu  sync.Mutex
	now time.Time
}

func newTicking() *ticking { return &ticking{now: time.Unix(1_800_000_000, 0)} }

func (c *ticking) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *ticking) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// table is a queue of fixed numbers that counts how often it is asked, and
// can fail, panic, or hold its answer back.
type table struct {
	mu                sync.Mutex
	requests, hooks   int // questions so far
	err               error
	panics            bool
	hold              chan struct{} // when set, an answer waits for its closing
	entered           chan struct{} // when set, told of every question
	sawCancelledAsker bool
}

func (q *table) ask(ctx context.Context, asked *int) error {
	q.mu.Lock()
	*asked++
	err, panics, hold, entered := q.err, q.panics, q.hold, q.entered
	q.mu.Unlock()
	if entered != nil {
		entered <- struct{}{}
	}
	if hold != nil {
		<-hold
	}
	if ctx.Err() != nil {
		q.mu.Lock()
		q.sawCancelledAsker = true
		q.mu.Unlock()
	}
	if panics {
		panic("SELECT hunter2")
	}
	return err
}

func (q *table) CountRequests(ctx context.Context) (queued, sent, failed int64, err error) {
	err = q.ask(ctx, &q.requests)
	return 7, 300_000, 21, err
}

func (q *table) CountHooks(ctx context.Context) (total, active int64, err error) {
	err = q.ask(ctx, &q.hooks)
	return 5, 4, err
}

func (q *table) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
}

func (q *table) asked() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.requests
}

// bench is an interface with everything behind it under the test's control.
type bench struct {
	handler http.Handler
	clock   *ticking
	queue   *table
	logged  *observer.ObservedLogs
	mu      sync.Mutex
	reasons []string // none: ready
}

func newBench(token string) *bench {
	core, logged := observer.New(zapcore.DebugLevel)
	b := &bench{clock: newTicking(), queue: &table{}, logged: logged}
	b.handler = New(Config{
		Counts: b.queue,
		Ready: func(context.Context) (bool, []string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.reasons == nil, b.reasons
		},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("waybill_up 1\n"))
		}),
		Token:  token,
		Now:    b.clock.Now,
		Logger: zap.New(core),
	})
	return b
}

func (b *bench) unready(reasons ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reasons = reasons
}

// do sends one request straight to the handler.
func (b *bench) do(method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w
}

// errorCode decodes an error answer, which must have exactly the agreed form.
func errorCode(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var answer struct {
		Error struct{ Code, Message string }
	}
	decoder := json.NewDecoder(w.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&answer); err != nil || answer.Error.Message == "" {
		t.Fatalf("not an error answer: %v", err)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
	return answer.Error.Code
}

func TestAnswers(t *testing.T) {
	b := newBench("")
	for target, want := range map[string]string{
		"/healthz":           `{"status":"ok"}`,
		"/readyz":            `{"status":"ready"}`,
		"/api/webhook/stats": `{"data":{"activeWebhooks":4,"failedCount":21,"queuedCount":7,"sentCount":300000}}`,
		"/api/webhook/hooks": `{"data":{"total":5}}`,
		"/metrics":           `waybill_up 1`,
	} {
		w := b.do(http.MethodGet, target)
		if w.Code != http.StatusOK || strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
		if head := b.do(http.MethodHead, target); head.Code != http.StatusOK {
			t.Errorf("HEAD %s: %d", target, head.Code)
		}
	}
}

func TestReadiness(t *testing.T) {
	b := newBench(token)
	b.unready("The Herald database does not exist yet.", "Temporal does not answer.")
	w := b.do(http.MethodGet, "/readyz")
	want := `{"reasons":["The Herald database does not exist yet.","Temporal does not answer."],"status":"unready"}`
	if w.Code != http.StatusServiceUnavailable || strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := b.do(http.MethodGet, "/healthz"); w.Code != http.StatusOK {
		t.Errorf("liveness follows readiness: %d", w.Code)
	}
	b.mu.Lock()
	b.reasons = nil
	b.mu.Unlock()
	b.clock.move(readyFresh)
	if w := b.do(http.MethodGet, "/readyz"); w.Code != http.StatusOK {
		t.Errorf("ready again: %d", w.Code)
	}
}

func TestReasonsAreSentences(t *testing.T) {
	for _, good := range []string{
		"Temporal does not answer.", "The queue's rows cannot be read, for now.", "Two hooks have no owner - yet. Wait.",
	} {
		if got := Reason(good); got != good {
			t.Errorf("Reason(%q) = %q", good, got)
		}
	}
	for _, bad := range []string{
		"", "dial tcp 10.0.0.9:3306: connection refused", "db.example.org is away", "SELECT * FROM x",
		"Error 1049 (42000): Unknown database 'phabricator_herald'", "open /etc/waybill/ca.pem", `C:\waybill`,
		"https://example.org", "user@host", "a\nb", "<script>", "naïve", strings.Repeat("long ", 30),
	} {
		if got := Reason(bad); got != reasonHidden {
			t.Errorf("Reason(%q) = %q", bad, got)
		}
	}
	b := newBench("")
	b.unready([]string{}...)
	b.mu.Lock()
	b.reasons = []string{} // not ready, and nobody says why
	b.mu.Unlock()
	if w := b.do(http.MethodGet, "/readyz"); !strings.Contains(w.Body.String(), reasonHidden) {
		t.Errorf("%s", w.Body)
	}
}

func TestFailingSourceStaysInside(t *testing.T) {
	for _, target := range []string{"/api/webhook/stats", "/api/webhook/hooks"} {
		b := newBench("")
		b.queue.fail(errors.New("dial tcp 10.0.0.9:3306: SELECT phabricator_herald hunter2"))
		w := b.do(http.MethodGet, target)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d", target, w.Code)
		}
		for _, secret := range []string{"10.0.0.9", "SELECT", "herald", "hunter2", "dial"} {
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s shows %q", target, secret)
			}
		}
		if code := errorCode(t, w); code != "unavailable" {
			t.Errorf("%s: code %q", target, code)
		}
	}
}

// TestStatsNeedBothCounts: half an answer is none.
func TestStatsNeedBothCounts(t *testing.T) {
	b := newBench("")
	b.do(http.MethodGet, "/api/webhook/hooks") // hooks are remembered
	b.queue.fail(errors.New("x"))
	if w := b.do(http.MethodGet, "/api/webhook/stats"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("without requests: %d", w.Code)
	}
	b.queue.fail(nil)
	b.clock.move(defaultFresh)
	b.do(http.MethodGet, "/api/webhook/stats")
	b.clock.move(defaultFresh)
	s := newServer(Config{Counts: halfTable{}, Now: b.clock.Now, Ready: func(context.Context) (bool, []string) { return true, nil }})
	w := httptest.NewRecorder()
	s.stats(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("without hooks: %d", w.Code)
	}
}

// halfTable can count requests only.
type halfTable struct{}

func (halfTable) CountRequests(context.Context) (queued, sent, failed int64, err error) {
	return 1, 2, 3, nil
}
func (halfTable) CountHooks(context.Context) (total, active int64, err error) {
	return 0, 0, errors.New("x")
}

func TestWithoutMetrics(t *testing.T) {
	handler := New(Config{Counts: &table{}, Now: time.Now, Ready: func(context.Context) (bool, []string) { return true, nil }})
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
}

func TestIncompleteWiringPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New accepted an empty Config")
		}
	}()
	New(Config{})
}
