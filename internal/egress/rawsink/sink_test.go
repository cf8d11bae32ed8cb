package rawsink_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/internal/egress/rawsink"
)

// start runs a sink for the test, with no waiting unless cfg has its own.
func start(t *testing.T, cfg rawsink.Config) *rawsink.Sink {
	t.Helper()
	if cfg.Wait == nil {
		cfg.Wait = func(context.Context, time.Duration) {}
	}
	sink, err := rawsink.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sink.Close)
	return sink
}

// dial connects to the sink.
func dial(t *testing.T, sink *rawsink.Sink) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", sink.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// request is a complete request for a path.
func request(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// ask sends one request and returns everything that comes back until the end.
func ask(t *testing.T, sink *rawsink.Sink, behaviour string) (string, error) {
	t.Helper()
	conn := dial(t, sink)
	fmt.Fprint(conn, request("/b/"+behaviour+"/case", "{}"))
	_ = conn.(*net.TCPConn).CloseWrite()
	all, err := io.ReadAll(conn)
	return string(all), err
}

func TestBytesOfEveryBehaviour(t *testing.T) {
	sink := start(t, rawsink.Config{})
	base := fmt.Sprintf("http://127.0.0.1:%d", sink.Port())
	redirect := func(location string) string {
		return "HTTP/1.1 302 X\r\nLocation: " + location + "\r\nContent-Length: 32\r\n\r\nredirect body\r\n\r\nsecond para\r\n\r\n"
	}
	// A prefix is compared, so that long answers can be told by their head.
	want := map[string]string{
		"ok": "HTTP/1.1 200 X\r\nContent-Length: 3\r\n\r\nok\n", "unknown": "HTTP/1.1 200 X\r\n",
		"fast":         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"close":        "",
		"status200":    "HTTP/1.1 200 X\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n",
		"status204":    "HTTP/1.1 204 X\r\n\r\n",
		"status304":    "HTTP/1.1 304 X\r\n\r\n",
		"status401":    "HTTP/1.1 401 X\r\nContent-Type: text/plain\r\nWWW-Authenticate: Basic realm=\"x\"\r\n",
		"status429":    "HTTP/1.1 429 X\r\nContent-Type: text/plain\r\nRetry-After: 120\r\n",
		"status503":    "HTTP/1.1 503 X\r\nContent-Type: text/plain\r\nRetry-After: 120\r\n",
		"garbage":      "hello this is not http\r\n\r\n",
		"ssh":          "SSH-2.0-OpenSSH_9.2\r\n",
		"partial":      "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789",
		"partialchunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"badchunk":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\nhello\r\n",
		"headeronly":   "HTTP/1.1 200 OK\r\nX: y",
		"cont100":      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 X\r\n",
		"early103":     "HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\nHTTP/1.1 200 X\r\n",
		"proc102":      "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 X\r\n",
		"conn200":      "HTTP/1.1 200 Connection established\r\nContent-Length: 3\r\n",
		"http10":       "HTTP/1.0 200 OK\r\n\r\nbody",
		"noreason":     "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
		"noreasonsp":   "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
		"lfonly":       "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
		"nohdr":        "HTTP/1.1 200 OK\r\n\r\n",
		"gzip":         "HTTP/1.1 200 X\r\nContent-Encoding: gzip\r\nContent-Length: ",
		"gzipbad":      "HTTP/1.1 200 X\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip",
		"gzipempty":    "HTTP/1.1 200 X\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n",
		"gzipupper":    "HTTP/1.1 200 X\r\nContent-Encoding: GZIP\r\nContent-Length: 8\r\n\r\nnot gzip",
		"deflate":      "HTTP/1.1 200 X\r\nContent-Encoding: deflate\r\nContent-Length: 11\r\n\r\nnot deflate",
		"gzip204":      "HTTP/1.1 204 X\r\nContent-Encoding: gzip\r\n\r\n",
		"gzipbad500":   "HTTP/1.1 500 X\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip",
		"bighdr":       "HTTP/1.1 200 X\r\nX-Big: aaaaaaaa",
		"manyhdr":      "HTTP/1.1 200 X\r\nX-0: bbbbbbbb",
		"nullhdr":      "HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n",
		"h2":           "HTTP/2 200\r\nContent-Length: 0\r\n\r\n",
		"h15":          "HTTP/1.5 200 OK\r\nContent-Length: 0\r\n\r\n",
		"upg101":       "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
		"second_close": "HTTP/1.1 200 X\r\n", "ok_then_close": "HTTP/1.1 200 X\r\n",
		"early_response": "HTTP/1.1 500 X\r\nContent-Length: 3\r\n\r\nok\n",
		"hang":           "", "reset": "",
		"hanghdr":  "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
		"trickle":  "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("x", 40),
		"slow14":   "HTTP/1.1 200 X\r\n",
		"huge":     "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\nyyyy",
		"infinite": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\nzzzz",

		"redir302": redirect("/b/status200/case"), "redir302to500": redirect("/b/status500/case"),
		"redir302abs": redirect(base + "/b/status200/case"), "redir302lo": redirect(base + "/b/status200/case"),
		"redir302host": redirect(strings.Replace(base, "127.0.0.1", "localhost", 1) + "/b/status200/case"),
		"redir302user": redirect(strings.Replace(base, "//", "//u:p@", 1) + "/b/status200/case"),
		"redir302loop": redirect("/b/redir302loop/case"), "redir302twice": redirect("/b/redir302/case"),
		"redir302ftp": redirect("ftp://127.0.0.1/x"), "redir302file": redirect("file:///etc/passwd"),
		"redir302noloc": "HTTP/1.1 302 X\r\nContent-Length: 32\r\n\r\n", "redir302empty": redirect(""),
		"redir302bad": redirect("http://["), "redir302dead": redirect("http://127.0.0.1:1/x"),
		"redir302hang": redirect("/b/hang/case"), "redir302nodns": redirect("http://nosuch.invalid/x"),
		"redir302frag": redirect("/b/status200/case#frag"), "redir302early": redirect("/b/early103/case"),
		"redir302what": "",
	}
	for _, name := range rawsink.Behaviours() {
		if _, ok := want[name]; !ok {
			t.Errorf("behaviour %s is not tested", name)
		}
	}
	for name, prefix := range want {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, sink, name)
			if reset := errors.Is(err, syscall.ECONNRESET); reset != (name == "reset") || (err != nil && !reset) {
				t.Errorf("error %v", err)
			}
			if !strings.HasPrefix(got, prefix) || (prefix == "") != (got == "") {
				t.Errorf("got %.200q, want %.200q", got, prefix)
			}
		})
	}
}

func TestKeepsExactBytesPerConnection(t *testing.T) {
	stamp := time.Unix(1700000000, 0)
	sink := start(t, rawsink.Config{Now: func() time.Time { return stamp }})
	conn := dial(t, sink)
	r := bufio.NewReader(conn)
	first := request("/b/status204/one?q=\xc3\xbc", "a\r\n\r\nb")
	second := "POST http://h:1/b/status204/two#f HTTP/1.1\r\ncontent-LENGTH:   3 \r\n\r\nxyz"
	fmt.Fprint(conn, first+second) // pipelined
	for range 2 {
		if answer, err := http.ReadResponse(r, nil); err != nil || answer.StatusCode != 204 {
			t.Fatalf("%v, %v", answer, err)
		}
	}
	want := []rawsink.Request{
		{Conn: 1, Nth: 1, At: stamp, Line: "POST /b/status204/one?q=\xc3\xbc HTTP/1.1", Behaviour: "status204", Case: "one", Raw: []byte(first)},
		{Conn: 1, Nth: 2, At: stamp, Line: "POST http://h:1/b/status204/two#f HTTP/1.1", Behaviour: "status204", Case: "two", Raw: []byte(second)},
	}
	if got := sink.Requests(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := sink.Case("two"); len(got) != 1 || got[0].Nth != 2 {
		t.Errorf("by case: %v", got)
	}
	if sink.Conns() != 1 {
		t.Errorf("%d connections", sink.Conns())
	}
}

func TestPathsWithoutBehaviour(t *testing.T) {
	sink := start(t, rawsink.Config{})
	for _, path := range []string{"/", "/x/y", "/b", "http://h"} {
		conn := dial(t, sink)
		fmt.Fprint(conn, request(path, ""))
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || answer.StatusCode != 200 {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := sink.Case("nocase"); len(got) != 4 || got[0].Behaviour != "status200" {
		t.Errorf("%v", got)
	}
}

func TestFastKeepsNoBytes(t *testing.T) {
	sink := start(t, rawsink.Config{})
	conn := dial(t, sink)
	fmt.Fprint(conn, request("/b/fast/fast", "{}"))
	if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		t.Fatal(err)
	}
	if got := sink.Case("fast"); len(got) != 1 || got[0].Raw != nil {
		t.Errorf("%v", got)
	}
}

func TestPartialRequests(t *testing.T) {
	sink := start(t, rawsink.Config{})
	conn := dial(t, sink)
	fmt.Fprint(conn, "POST /b/ok/x HTTP/1.1\r\nHost")
	_ = conn.(*net.TCPConn).CloseWrite()
	if _, err := io.ReadAll(conn); err != nil { // the sink has given up when this returns
		t.Fatal(err)
	}
	got := sink.Partials()
	if len(got) != 1 || string(got[0].Raw) != "POST /b/ok/x HTTP/1.1\r\nHost" || len(sink.Requests()) != 0 {
		t.Errorf("%v, %v", got, sink.Requests())
	}
}

func TestSecondCloseServesOneRequestPerConnection(t *testing.T) {
	sink := start(t, rawsink.Config{})
	conn := dial(t, sink)
	r := bufio.NewReader(conn)
	fmt.Fprint(conn, request("/b/second_close/c", ""))
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	fmt.Fprint(conn, request("/b/second_close/c", ""))
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("second request: %v", err)
	}
}

func TestWaitsAreAskedFor(t *testing.T) {
	var waits []time.Duration
	sink := start(t, rawsink.Config{Wait: func(_ context.Context, d time.Duration) { waits = append(waits, d) }})
	if _, err := ask(t, sink, "slow14"); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, sink, "trickle"); err != nil {
		t.Fatal(err)
	}
	sink.Close()
	want := append([]time.Duration{14 * time.Second}, slices.Repeat([]time.Duration{time.Second}, 40)...)
	if !slices.Equal(waits, want) {
		t.Errorf("waits %v", waits)
	}
}

func TestCloseCutsWhateverHangs(t *testing.T) {
	sink, err := rawsink.Start(rawsink.Config{}) // real waits
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"hang", "hanghdr", "trickle", "slow14", "infinite", "ok_then_close"}
	for _, name := range names {
		conn := dial(t, sink)
		fmt.Fprint(conn, request("/b/"+name+"/x", ""))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := sink.Wait(ctx, len(names)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { sink.Close(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		t.Error("Close waits for a behaviour")
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	sink := start(t, rawsink.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sink.Wait(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestListensWhereTold(t *testing.T) {
	first := start(t, rawsink.Config{})
	if _, err := rawsink.Start(rawsink.Config{Addr: first.Addr()}); err == nil {
		t.Error("a taken port was accepted")
	}
	first.Close()
	again := start(t, rawsink.Config{Addr: first.Addr()})
	if again.Addr() != first.Addr() || again.URL("ok", "c") != "http://"+first.Addr()+"/b/ok/c" {
		t.Errorf("%s", again.URL("ok", "c"))
	}
}

func TestPlainClientOfATLSSinkIsReset(t *testing.T) {
	sink := start(t, rawsink.Config{TLS: &tls.Config{Certificates: []tls.Certificate{{}}}})
	if !strings.HasPrefix(sink.URL("ok", "c"), "https://") {
		t.Error(sink.URL("ok", "c"))
	}
	if _, err := ask(t, sink, "ok"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v", err)
	}
	if len(sink.Requests()) != 0 || sink.Conns() != 1 {
		t.Error("a plain request was served")
	}
}
