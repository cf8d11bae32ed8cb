package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

var protected = []string{"/api/webhook/stats", "/api/webhook/hooks", "/metrics"}
var open = []string{"/healthz", "/readyz"}

// TestStrangersAtTheDoor tries what somebody without the token would.
func TestStrangersAtTheDoor(t *testing.T) {
	b := newBench(token)
	for name, headers := range map[string][]string{
		"nothing":         nil,
		"empty":           {"Authorization", ""},
		"scheme only":     {"Authorization", "Bearer"},
		"empty token":     {"Authorization", "Bearer "},
		"wrong token":     {"Authorization", "Bearer wrong"},
		"prefix":          {"Authorization", "Bearer " + token[:len(token)-1]},
		"longer":          {"Authorization", "Bearer " + token + "x"},
		"other case":      {"Authorization", "Bearer " + strings.ToUpper(token)},
		"trailing space":  {"Authorization", "Bearer " + token + " "},
		"basic":           {"Authorization", "Basic " + token},
		"bare":            {"Authorization", token},
		"quoted":          {"Authorization", `Bearer "` + token + `"`},
		"tab":             {"Authorization", "Bearer\t" + token},
		"two headers":     {"Authorization", "Bearer " + token, "Authorization", "Bearer " + token},
		"other header":    {"X-Api-Key", token},
		"proxy header":    {"Proxy-Authorization", "Bearer " + token},
		"cookie":          {"Cookie", "token=" + token},
		"long":            {"Authorization", "Bearer " + strings.Repeat("a", 1<<20)},
		"null byte":       {"Authorization", "Bearer " + token + "\x00"},
		"forwarded local": {"X-Forwarded-For", "127.0.0.1"},
	} {
		for _, path := range protected {
			w := b.do(http.MethodGet, path, headers...)
			if w.Code != http.StatusUnauthorized {
				t.Errorf("%s at %s: %d", name, path, w.Code)
			}
			if !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), `Bearer realm="waybill"`) {
				t.Errorf("%s at %s: challenge %q", name, path, w.Header().Get("WWW-Authenticate"))
			}
			if code := errorCode(t, w); code != "unauthorized" {
				t.Errorf("%s at %s: code %q", name, path, code)
			}
		}
	}
	if got := b.do(http.MethodGet, "/api/webhook/stats?token="+token+"&access_token="+token).Code; got != http.StatusUnauthorized {
		t.Errorf("a token in the query: %d", got)
	}
	if b.queue.asked() != 0 {
		t.Error("strangers reached the queue")
	}
}

func TestTokenOpens(t *testing.T) {
	b := newBench(token)
	for _, path := range protected {
		for _, value := range []string{"Bearer " + token, "bearer " + token, "BEARER " + token, "Bearer  " + token} {
			if w := b.do(http.MethodGet, path, "Authorization", value); w.Code != http.StatusOK {
				t.Errorf("%s with %q: %d", path, value, w.Code)
			}
		}
	}
	for _, path := range open {
		if w := b.do(http.MethodGet, path); w.Code != http.StatusOK {
			t.Errorf("%s needs a token: %d", path, w.Code)
		}
		if w := b.do(http.MethodGet, path, "Authorization", "Bearer wrong"); w.Code != http.StatusOK {
			t.Errorf("%s judges a token: %d", path, w.Code)
		}
	}
}

func TestChallengeSaysWhetherATokenWasOffered(t *testing.T) {
	b := newBench(token)
	if got := b.do(http.MethodGet, "/metrics").Header().Get("WWW-Authenticate"); got != challengeMissing {
		t.Errorf("without a token: %q", got)
	}
	if got := b.do(http.MethodGet, "/metrics", "Authorization", "Bearer x").Header().Get("WWW-Authenticate"); got != challengeWrong {
		t.Errorf("with a wrong one: %q", got)
	}
}

func TestOnlyReadingMethods(t *testing.T) {
	b := newBench("")
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "FOO"} {
		for _, path := range append(protected, open...) {
			w := b.do(method, path)
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, path, w.Code, w.Header().Get("Allow"))
			}
			if code := errorCode(t, w); code != "method_not_allowed" {
				t.Errorf("%s %s: code %q", method, path, code)
			}
		}
	}
	// An override header changes nothing.
	if w := b.do(http.MethodGet, "/healthz", "X-Http-Method-Override", "DELETE"); w.Code != http.StatusOK {
		t.Errorf("override: %d", w.Code)
	}
}

func TestUnknownPaths(t *testing.T) {
	paths := []string{
		"/", "/healthz/", "/Healthz", "//healthz", "/healthz/../metrics", "/metrics/", "/api", "/api/", "/api/webhook",
		"/api/webhook/", "/api/webhook/stats/", "/api/webhook/stats/1", "/api/webhook%2Fstats", "/api/%2e%2e/metrics",
		"/api/webhook/stats%00", "/apiary", "/.git/config", "/debug/pprof/", "/favicon.ico", "/robots.txt",
	}
	b := newBench("")
	for _, path := range paths {
		w := b.do(http.MethodGet, path)
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
			continue
		}
		if strings.Contains(w.Body.String(), path) && path != "/" {
			t.Errorf("%s is repeated in the answer", path)
		}
		if code := errorCode(t, w); code != "not_found" {
			t.Errorf("%s: code %q", path, code)
		}
	}
	// With a token, what lies below /api is not told to strangers.
	guarded := newBench(token)
	for _, path := range []string{"/api", "/api/", "/api/nothing", "/api/webhook/stats/1"} {
		if w := guarded.do(http.MethodGet, path); w.Code != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", path, w.Code)
		}
		if w := guarded.do(http.MethodGet, path, "Authorization", "Bearer "+token); w.Code != http.StatusNotFound {
			t.Errorf("%s with a token: %d", path, w.Code)
		}
	}
	if w := guarded.do(http.MethodPost, "/api/webhook/stats"); w.Code != http.StatusUnauthorized {
		t.Errorf("POST without a token: %d", w.Code)
	}
}

func TestGuardsOnEveryAnswer(t *testing.T) {
	b := newBench(token)
	b.queue.fail(errors.New("x"))
	for _, call := range []struct{ method, path, authorization string }{
		{"GET", "/healthz", ""}, {"GET", "/readyz", ""}, {"GET", "/metrics", "Bearer " + token}, {"GET", "/metrics", ""},
		{"GET", "/nothing", ""}, {"POST", "/healthz", ""}, {"GET", "/api/webhook/stats", "Bearer " + token},
	} {
		w := b.do(call.method, call.path, "Authorization", call.authorization)
		for _, guard := range guards {
			if got := w.Header().Values(guard.name); len(got) != 1 || got[0] != guard.value {
				t.Errorf("%s %s (%d): %s = %q", call.method, call.path, w.Code, guard.name, got)
			}
		}
		if w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("Server") != "" {
			t.Errorf("%s %s: chatty headers %v", call.method, call.path, w.Header())
		}
	}
}

// TestPanics covers one before and one after the answer began, and the one
// that net/http reserves for itself.
func TestPanics(t *testing.T) {
	b := newBench("")
	s := newServer(Config{Counts: b.queue, Now: b.clock.Now, Ready: func(context.Context) (bool, []string) { panic("hunter2") }})
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		aborts  bool
	}{
		{"before", func(http.ResponseWriter, *http.Request) { panic("hunter2") }, false},
		{"after", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); panic("hunter2") }, true},
		{"abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		{"unencodable", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, func() {}) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			aborted := func() (cause any) {
				defer func() { cause = recover() }()
				s.shielded(test.handler).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
				return nil
			}()
			if (aborted == http.ErrAbortHandler) != test.aborts { //nolint:errorlint // a panic's value
				t.Fatalf("recovered %v", aborted)
			}
			if test.aborts {
				return
			}
			if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "hunter2") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if code := errorCode(t, w); code != "internal" {
				t.Errorf("code %q", code)
			}
		})
	}
	// A panic in a source happens in another goroutine and must not end the process.
	w := httptest.NewRecorder()
	s.readyz(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), reasonSlow) {
		t.Errorf("panicking readiness: %d %s", w.Code, w.Body)
	}
	b.queue.panics = true
	if w := b.do(http.MethodGet, "/api/webhook/stats"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("panicking count: %d", w.Code)
	}
}

func TestPanicIsLoggedWithoutItsText(t *testing.T) {
	b := newBench("")
	handler := New(Config{
		Counts: b.queue, Now: b.clock.Now, Ready: func(context.Context) (bool, []string) { return true, nil },
		Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("hunter2") }),
	})
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusInternalServerError || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	for _, entry := range b.logged.All() {
		if strings.Contains(fmt.Sprint(entry.ContextMap()["panic_type"]), "hunter2") {
			t.Errorf("logged %v", entry)
		}
	}
}

// running serves a handler on loopback and returns its address and a way to
// stop it.
func running(t *testing.T, handler http.Handler) (address string, stop context.CancelFunc, done <-chan error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- Serve(ctx, listener, Server("", handler)) }()
	t.Cleanup(cancel)
	return listener.Addr().String(), cancel, result
}

// raw sends bytes as they are and returns the answer's status line and headers.
func raw(t *testing.T, address, request string) string {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_ = connection.SetDeadline(time.Now().Add(5 * time.Second))
	go func() { _, _ = io.WriteString(connection, request) }() // the server may answer before all is sent
	var b strings.Builder
	reader := bufio.NewReader(connection)
	for {
		line, err := reader.ReadString('\n')
		b.WriteString(line)
		if err != nil || line == "\r\n" {
			return b.String()
		}
	}
}

func TestOnTheWire(t *testing.T) {
	address, _, _ := running(t, newBench("").handler)
	for _, test := range []struct{ name, request, status, header string }{
		{"plain", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "200", "Content-Length: 16"},
		{"HEAD", "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "200", "Content-Length: 16"},
		{"no host", "GET /healthz HTTP/1.1\r\n\r\n", "400", ""},
		{"headers too large", "GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", "431", ""},
		{"a body", "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", "200", "Connection: close"},
		{"an endless body", "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\nxxxx", "200", "Connection: close"},
		{"a chunked body", "GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "200", "Connection: close"},
		{"smuggling", "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400", ""},
		{"no HTTP", "hello\r\n\r\n", "400", ""},
		{"absolute form", "GET http://elsewhere.example/healthz HTTP/1.1\r\nHost: x\r\n\r\n", "200", ""},
		{"an upgrade", "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "200", ""},
		{"TRACE", "TRACE /healthz HTTP/1.1\r\nHost: x\r\nCookie: hunter2\r\n\r\n", "405", "Allow: GET, HEAD"},
		{"asterisk", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "200", ""}, // answered by net/http itself
	} {
		t.Run(test.name, func(t *testing.T) {
			got := raw(t, address, test.request)
			if !strings.HasPrefix(got, "HTTP/1.1 "+test.status) && !strings.HasPrefix(got, "HTTP/1.0 "+test.status) {
				t.Errorf("answer %q", got)
			}
			if !strings.Contains(got, test.header) || strings.Contains(got, "hunter2") {
				t.Errorf("answer %q, want %q in it", got, test.header)
			}
		})
	}
}

func TestServerHasEveryLimit(t *testing.T) {
	s := Server("127.0.0.1:0", http.NotFoundHandler())
	if s.Addr != "127.0.0.1:0" || s.Handler == nil || s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 ||
		s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("server %+v", s)
	}
	if s.WriteTimeout <= readTimeout || shutdownTimeout <= readTimeout {
		t.Error("a source may take longer than its answer")
	}
}
