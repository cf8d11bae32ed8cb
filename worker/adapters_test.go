package worker

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"waybill/activities"
	"waybill/internal/devstack/stacktest"
	"waybill/internal/egress"
	"waybill/internal/herald"
	"waybill/internal/sourcetest"
	"waybill/internal/telemetry"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

// Every kind of fault, in the activities' words.
func TestReplyToEveryFault(t *testing.T) {
	codes := []int{
		egress.CodeNotHTTP, egress.CodeMalformed, egress.CodeResolve, egress.CodeConnect, egress.CodeTruncated, egress.CodeTimeout,
		egress.CodeTLS, egress.CodeCancelled, egress.CodeNoAnswer, egress.CodeSend, egress.CodeReceive, egress.CodeCertificate, 0,
	}
	for _, code := range codes {
		for bits := range 16 {
			f := &egress.Fault{Code: code, Timeout: bits&1 > 0, NoSuchHost: bits&2 > 0, Denied: bits&4 > 0, BodySent: bits&8 > 0}
			got := reply(egress.Outcome{Fault: f, Duration: time.Second})
			want := activities.Reply{
				Answer:  herald.Answer{Curl: code, Timeout: f.Timeout, NoSuchHost: f.NoSuchHost, Denied: f.Denied},
				Aborted: code == egress.CodeCancelled, Sent: f.BodySent, Fault: f.Error(), Took: time.Second,
			}
			if got != want {
				t.Errorf("%+v: %+v, want %+v", f, got, want)
			}
		}
	}
	got := reply(egress.Outcome{Status: 204})
	if want := (activities.Reply{Answer: herald.Answer{HTTPStatus: 204}, Sent: true, Took: 1}); got != want {
		t.Errorf("an answer: %+v, want %+v", got, want)
	}
}

// What goes out is what Phorge sends: method, path, headers and exact bytes.
func TestPosterCallsLikePhorge(t *testing.T) {
	seen := make(chan *http.Request, 1)
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		seen <- r
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	uri := strings.Replace(server.URL, "http://", "http://ada:s%3Acret@", 1) + "/in/box?a=b%20c&d"
	target, err := herald.ParseURI(uri)
	if err != nil {
		t.Fatal(err)
	}
	p := Poster{Egress: egress.New(egress.Config{
		Policy:    egress.NewPolicy(egress.DefaultDeny(), []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}),
		UserAgent: "waybill/test", Now: time.Now,
	})}
	reply := p.Post(t.Context(), activities.Call{Target: target, Body: []byte("{\n}\n"), Signature: "abc123", Timeout: time.Minute})
	if reply.Answer.HTTPStatus != http.StatusAccepted || !reply.Sent || reply.Aborted || reply.Fault != "" || reply.Took <= 0 {
		t.Fatalf("%+v", reply)
	}
	r := <-seen
	if r.Method != http.MethodPost || r.RequestURI != "/in/box?a=b%20c&d" || string(body) != "{\n}\n" {
		t.Errorf("%s %s %q", r.Method, r.RequestURI, body)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", signatureHeader: "abc123", "User-Agent": "waybill/test", "Content-Length": "4",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if user, password, _ := r.BasicAuth(); user != "ada" || password != "s:cret" {
		t.Errorf("basic auth %q %q", user, password)
	}
}

func TestPosterReportsARefusedAddress(t *testing.T) {
	target, err := herald.ParseURI("http://127.0.0.1:9/")
	if err != nil {
		t.Fatal(err)
	}
	p := Poster{Egress: egress.New(egress.Config{Policy: egress.NewPolicy(egress.DefaultDeny(), nil), Now: time.Now})}
	r := p.Post(t.Context(), activities.Call{Target: target, Timeout: time.Second})
	if !r.Answer.Denied || r.Sent || r.Aborted {
		t.Errorf("%+v", r)
	}
}

func TestPosterReportsAWithdrawnCall(t *testing.T) {
	begun := make(chan struct{})
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		close(begun)
		<-release
	}))
	defer server.Close()
	defer close(release)
	target, err := herald.ParseURI(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := Poster{Egress: egress.New(egress.Config{Policy: egress.NewPolicy(nil, nil), Now: time.Now})}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if r := p.Post(ctx, activities.Call{Target: target, Timeout: time.Minute}); !r.Aborted || !r.Sent {
		t.Errorf("%+v", r)
	}
}

// metrics reads a provider's exposition.
func metrics(t *testing.T, p *telemetry.Provider) string {
	t.Helper()
	rec := httptest.NewRecorder()
	p.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return rec.Body.String()
}

// Every state of a claim is counted as what it is.
func TestMeterCountsEveryClaimState(t *testing.T) {
	table := map[activities.ClaimState]string{
		activities.Won: "won", activities.Lost: "lost", activities.Leased: "lost",
		activities.Elsewhere: "deferred", activities.Unowned: "deferred", activities.Paused: "deferred",
		activities.BreakerOpen: "deferred", activities.Resting: "deferred", activities.Busy: "deferred",
		activities.Finished: "", activities.Misconfigured: "", activities.Collected: "", activities.Untouched: "unprocessable",
	}
	for _, name := range sourcetest.Constants(t, "../activities/types.go", "ClaimState") {
		want, ok := table[activities.ClaimState(name)]
		if !ok {
			t.Errorf("the table lacks %q", name)
			continue
		}
		p, m := meter(t)
		m.Claim(activities.ClaimState(name))
		text := metrics(t, p)
		for _, result := range []string{"won", "lost", "deferred"} {
			if got := strings.Contains(text, `result="`+result+`"} 1`); got != (want == result) {
				t.Errorf("%s counted as %s: %v", name, result, got)
			}
		}
	}
}

func TestMeterCountsWaitingResults(t *testing.T) {
	p, m := meter(t)
	const series = "waybill_herald_write_backs_waiting"
	at := func(want string) {
		t.Helper()
		for line := range strings.Lines(metrics(t, p)) {
			if strings.HasPrefix(line, series) && !strings.HasSuffix(strings.TrimSpace(line), " "+want) {
				t.Errorf("%q, want %s", line, want)
			}
		}
		if !strings.Contains(metrics(t, p), series) {
			t.Fatalf("no series %s", series)
		}
	}
	at("0")
	m.WriteBacksWaiting(1)
	m.WriteBacksWaiting(1)
	at("2")
	m.WriteBacksWaiting(-1)
	at("1")
	m.WriteBacksWaiting(-1)
	m.WriteBacksWaiting(-1) // one that another process began
	at("0")
	m.Attempt("ok", time.Second)
	if !strings.Contains(metrics(t, p), `outcome="ok"} 1`) {
		t.Error("an attempt was not counted")
	}
}

// No reply says where a call went.
func TestRepliesHoldNoAddress(t *testing.T) {
	target, err := herald.ParseURI("http://user:hunter2@127.0.0.1:9/secret-path")
	if err != nil {
		t.Fatal(err)
	}
	p := Poster{Egress: egress.New(egress.Config{Policy: egress.NewPolicy(nil, nil), Now: time.Now})}
	r := p.Post(t.Context(), activities.Call{Target: target, Timeout: 5 * time.Second})
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"127.0.0.1", "hunter2", "secret-path"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s holds %q", text, secret)
		}
	}
}
