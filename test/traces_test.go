package acceptance

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"waybill/test/scenario"
)

// spans is a collector: the endpoint of OTLP over HTTP, as the specification has it.
type spans struct {
	*httptest.Server
	mu  sync.Mutex
	all []*traces.Span
	raw bytes.Buffer
}

func newCollector(t *testing.T) *spans {
	t.Helper()
	s := &spans{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("not OTLP: %s %s: %v", r.Method, r.URL, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.raw.Write(body)
		for _, of := range request.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				s.all = append(s.all, scope.GetSpans()...)
			}
		}
		answer, _ := proto.Marshal(&collector.ExportTraceServiceResponse{})
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// path is the names of the spans from a root down to the first span of that name
// that has the attribute, empty while there is none.
func (s *spans) path(name, key, value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	byID := map[string]*traces.Span{}
	for _, span := range s.all {
		byID[string(span.GetSpanId())] = span
	}
	for _, root := range s.all {
		if !has(root, key, value) {
			continue
		}
		for _, span := range s.all {
			if span.GetName() != name || !bytes.Equal(span.GetTraceId(), root.GetTraceId()) {
				continue
			}
			names := []string{}
			for at := span; at != nil; at = byID[string(at.GetParentSpanId())] {
				names = append([]string{at.GetName()}, names...)
			}
			return strings.Join(names, " > ")
		}
	}
	return ""
}

func has(span *traces.Span, key, value string) bool {
	for _, a := range span.GetAttributes() {
		if a.GetKey() == key && a.GetValue().GetStringValue() == value {
			return true
		}
	}
	return false
}

// tracing are the settings that turn it on.
func tracing(endpoint string) map[string]string {
	return map[string]string{
		"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_BSP_SCHEDULE_DELAY": "100",
	}
}

// One trace leads from the candidate to the write-back, whether the attempt is made
// within the workflow's task or later, by an activity. Receivers get no header of
// it, and it names no address and no key.
func TestATraceLeadsFromTheCandidateToTheWrite(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	l := newLane(t, tracing(c.URL))
	secret := "tracedsecret"
	h := l.hook(t, "status200", "traced")
	flaky := l.hook(t, "status503", "traced-again")
	if err := l.SetHookURI(t.Context(), h.PHID, strings.Replace(h.URI, "http://", "http://user:"+secret+"@", 1)); err != nil {
		t.Fatal(err)
	}
	sent := queue(t, l.Site, h, l.object, never)
	await(t, l.Site, sent.PHID, "sent", "okay")
	retried := queue(t, l.Site, flaky, l.object, forever)
	l.receiver.Await(t, "traced-again", 2, patience)
	if err := l.SetHookURI(t.Context(), flaky.PHID, l.receiver.URL("status200", "traced-again")); err != nil {
		t.Fatal(err)
	}
	await(t, l.Site, retried.PHID, "sent", "okay")
	// A workflow's own span comes when it ends.
	const whole = "candidate > StartWorkflow:Request > RunWorkflow:Request > "
	for _, name := range []string{"claim", "POST", "write"} {
		for _, r := range []string{sent.PHID, retried.PHID} {
			var path string
			scenario.Until(t, patience, func() string { return "the way to " + name + " is whole, not " + path }, func() bool {
				path = c.path(name, "waybill.request", r)
				return strings.HasPrefix(path, whole)
			})
		}
	}
	wire := scenario.ParseWire(l.receiver.Case("traced")[0].Raw)
	if head := strings.ToLower(string(l.receiver.Case("traced")[0].Raw)); strings.Contains(head, "traceparent") || len(wire.Body) == 0 {
		t.Errorf("the receiver is told of the trace:\n%s", head)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, marked := range []string{secret, "http://", strings.TrimPrefix(h.URI, "http://")} {
		if bytes.Contains(c.raw.Bytes(), []byte(marked)) {
			t.Errorf("traces have %q", marked)
		}
	}
}

// Off unless it is asked for; a collector that is away costs a line in the log and
// no delivery; a setting that cannot be meant is an error.
func TestTracingIsOffUnlessAskedFor(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	off := tracing(c.URL)
	off["OTEL_TRACES_EXPORTER"] = ""
	quiet := newLane(t, off)
	await(t, quiet.Site, queue(t, quiet.Site, quiet.hook(t, "status200", "untraced"), quiet.object, never).PHID, "sent", "okay")
	if code := quiet.serve.Stop(t); code != 0 || len(c.all) > 0 {
		t.Errorf("code %d, %d spans of a serve without tracing", code, len(c.all))
	}

	alone := newLane(t, tracing("http://127.0.0.1:1"))
	for range 3 {
		await(t, alone.Site, queue(t, alone.Site, alone.hook(t, "status200", "alone"), alone.object, never).PHID, "sent", "okay")
	}
	alone.serve.Log.Await(t, patience, 1, "traces cannot be exported")
	scenario.Never(t, time.Second, "it is said twice", func() bool { return len(alone.serve.Log.Find("traces cannot be exported")) > 1 })

	for name, settings := range map[string]map[string]string{
		"OTEL_TRACES_EXPORTER":        {"OTEL_TRACES_EXPORTER": "zipkin"},
		"OTEL_EXPORTER_OTLP_PROTOCOL": {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
	} {
		if _, stderr, code := alone.Command(t, settings, "serve"); code != 2 || !strings.Contains(stderr, name) {
			t.Errorf("%s: code %d, %s", name, code, stderr)
		}
	}
}
