package egress_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"waybill/internal/egress"
	"waybill/internal/egress/rawsink"
)

// TestTargetsAreWrittenAsTheyAre holds the request targets of the recorded
// cases and the ones a net/http request cannot express.
func TestTargetsAreWrittenAsTheyAre(t *testing.T) {
	sink := newSink(t, rawsink.Config{})
	client := newClient(egress.Config{})
	for _, target := range []string{
		"/", "/?", "/?a=1", "/b/status200/query?a=1&b=%20x&b=2", "/b/status200/only-q?",
		"/b/status200/nonascii/h%c3%a9llo?q=\xc3\xbc", "/b/status200/\xff\xfe",
		"/b/status200/brackets/[1]{2}", "/b/status200/quotes/\"<>|^`", `/b/status200/back\slash`,
		"/b/status200/plus/a+b;c,d", "/b/status200/%2e%2e/x", "/b/status200/../x", "/b/status200/./",
		"//x", "//x/{y}", "///", "//x?y//z", "/x??", "/%", "/%zz", "/a#b", "/*", "/:80", "/@h",
		"/b/status200/long/" + strings.Repeat("x", 3000),
	} {
		before := len(sink.Requests())
		want(t, client.Post(t.Context(), callTo(sink.Port(), target)), 200, nil)
		got := sink.Requests()[before:]
		if len(got) != 1 || got[0].Line != "POST "+target+" HTTP/1.1" {
			t.Errorf("target %q: %v", target, got)
		}
	}
}

func TestExactRequest(t *testing.T) {
	sink := newSink(t, rawsink.Config{})
	client := newClient(egress.Config{UserAgent: "waybill/test"})
	call := callTo(sink.Port(), "/b/ok/exact")
	call.Host = "LocalHost:0" + call.Port
	call.Header = http.Header{
		"Content-Type":                    {"application/json"},
		"X-Phabricator-Webhook-Signature": {"abc"},
	}
	call.BasicAuth = &egress.Credentials{User: "us er", Password: "p\xc3\xa4:x"}
	call.Body = []byte("{\"a\": \"\u00fc\"}\r\n\r\n\x00\n")
	want(t, client.Post(t.Context(), call), 200, nil)
	expected := "POST /b/ok/exact HTTP/1.1\r\n" +
		"Host: LocalHost:0" + call.Port + "\r\n" +
		"Authorization: Basic dXMgZXI6cMOkOng=\r\n" +
		"User-Agent: waybill/test\r\n" +
		"Connection: close\r\n" +
		"Content-Type: application/json\r\n" +
		"X-Phabricator-Webhook-Signature: abc\r\n" +
		fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(call.Body), call.Body)
	if got := string(sink.Requests()[0].Raw); got != expected {
		t.Errorf("got  %q\nwant %q", got, expected)
	}
}

func TestUserWithoutPassword(t *testing.T) {
	sink := newSink(t, rawsink.Config{})
	call := callTo(sink.Port(), "/b/ok/user")
	call.BasicAuth = &egress.Credentials{User: "user"}
	want(t, newClient(egress.Config{}).Post(t.Context(), call), 200, nil)
	// As recorded from Phorge for http://user@host/.
	if raw := string(sink.Requests()[0].Raw); !strings.Contains(raw, "\r\nAuthorization: Basic dXNlcjo=\r\n") {
		t.Errorf("%q", raw)
	}
}

func TestEmptyBodyHasALength(t *testing.T) {
	sink := newSink(t, rawsink.Config{})
	call := callTo(sink.Port(), "/b/ok/empty")
	call.Body, call.Header = nil, nil
	want(t, newClient(egress.Config{}).Post(t.Context(), call), 200, nil)
	raw := string(sink.Requests()[0].Raw)
	if !strings.HasSuffix(raw, "\r\nContent-Length: 0\r\n\r\n") || !strings.Contains(raw, "\r\nUser-Agent: waybill\r\n") {
		t.Errorf("%q", raw)
	}
}

// TestCallsThatCannotBeWritten never open a connection.
func TestCallsThatCannotBeWritten(t *testing.T) {
	sink := newSink(t, rawsink.Config{})
	edits := map[string]func(*egress.Call){
		"no target":           func(c *egress.Call) { c.RequestTarget = "" },
		"target without path": func(c *egress.Call) { c.RequestTarget = "x" },
		"absolute target":     func(c *egress.Call) { c.RequestTarget = "http://h/" },
		"asterisk":            func(c *egress.Call) { c.RequestTarget = "*" },
		"space in target":     func(c *egress.Call) { c.RequestTarget = "/ HTTP/1.0" },
		"line in target":      func(c *egress.Call) { c.RequestTarget = "/\r\nX: y" },
		"NUL in target":       func(c *egress.Call) { c.RequestTarget = "/\x00" },
		"DEL in target":       func(c *egress.Call) { c.RequestTarget = "/\x7f" },
		"no scheme":           func(c *egress.Call) { c.Scheme = "" },
		"other scheme":        func(c *egress.Call) { c.Scheme = "ftp" },
		"upper-case scheme":   func(c *egress.Call) { c.Scheme = "HTTP" },
		"no host":             func(c *egress.Call) { c.Host = "" },
		"line in host":        func(c *egress.Call) { c.Host = "h\r\nX: y" },
		"space in host":       func(c *egress.Call) { c.Host = "h h" },
		"no hostname":         func(c *egress.Call) { c.Hostname = "" },
		"space in hostname":   func(c *egress.Call) { c.Hostname = "a b" },
		"U-label":             func(c *egress.Call) { c.Hostname = "b\u00fccher.example" },
		"leading dot":         func(c *egress.Call) { c.Hostname = ".example" },
		"long hostname":       func(c *egress.Call) { c.Hostname = strings.Repeat("a.", 130) + "example" },
		"no port":             func(c *egress.Call) { c.Port = "" },
		"port 0":              func(c *egress.Call) { c.Port = "0" },
		"port 65536":          func(c *egress.Call) { c.Port = "65536" },
		"port -1":             func(c *egress.Call) { c.Port = "-1" },
		"port name":           func(c *egress.Call) { c.Port = "http" },
		"field name":          func(c *egress.Call) { c.Header.Set("X Y", "z") },
		"line in field":       func(c *egress.Call) { c.Header["X"] = []string{"a\r\nY: z"} },
		"line in field name":  func(c *egress.Call) { c.Header["X\r\nY"] = []string{"z"} },
	}
	for _, name := range []string{"Host", "Authorization", "User-Agent", "Content-Length", "Connection", "Keep-Alive",
		"Proxy-Connection", "Proxy-Authorization", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
		"Accept-Encoding", "Idempotency-Key", "X-Idempotency-Key", "x-IDEMPOTENCY-key"} {
		edits["field "+name] = func(c *egress.Call) { c.Header[name] = []string{"x"} }
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			call := callTo(sink.Port(), "/b/ok/x")
			edit(&call)
			want(t, newClient(egress.Config{}).Post(t.Context(), call), 0, unsent(egress.CodeMalformed))
		})
	}
	call := callTo(sink.Port(), "/b/ok/x")
	bad := newClient(egress.Config{UserAgent: "a\r\nb"})
	want(t, bad.Post(t.Context(), call), 0, unsent(egress.CodeMalformed))
	if sink.Conns() != 0 {
		t.Errorf("%d connections", sink.Conns())
	}
}

// TestEnvironmentProxiesAreIgnored points every proxy variable at a receiver
// that must stay alone.
func TestEnvironmentProxiesAreIgnored(t *testing.T) {
	proxy, sink := newSink(t, rawsink.Config{}), newSink(t, rawsink.Config{})
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://"+proxy.Addr())
	}
	want(t, newClient(egress.Config{}).Post(t.Context(), callTo(sink.Port(), "/b/ok/x")), 200, nil)
	if proxy.Conns() != 0 || sink.Conns() != 1 {
		t.Errorf("%d connections to the proxy, %d to the receiver", proxy.Conns(), sink.Conns())
	}
}

// TestSecretsStayInside marks every secret part of a call, has attempts fail
// in all stages, and looks for the mark in whatever can be printed.
func TestSecretsStayInside(t *testing.T) {
	const mark = "s3cr3tmark"
	sink := newSink(t, rawsink.Config{})
	plain := newAuthority(t)
	tlsSink := newSink(t, rawsink.Config{TLS: plain.server(t, nil)})
	calls := map[string]egress.Call{}
	for _, behaviour := range []string{"reset", "close", "garbage", "partial", "badchunk", "hang", "ok"} {
		calls[behaviour] = callTo(sink.Port(), "/b/"+behaviour+"/"+mark)
	}
	calls["tls"] = callTo(tlsSink.Port(), "/"+mark)
	calls["plain to tls"] = callTo(tlsSink.Port(), "/"+mark)
	calls["refused"] = callTo(closedPort(t), "/"+mark)
	calls["malformed"] = callTo(sink.Port(), "/ "+mark)
	calls["denied"] = callTo(sink.Port(), "/"+mark)
	calls["name"] = callTo(sink.Port(), "/"+mark)
	for name, call := range calls {
		call.Timeout = brief
		call.Header = http.Header{"X-Mark": {mark}}
		call.Body = []byte(mark)
		call.BasicAuth = &egress.Credentials{User: mark, Password: mark}
		switch name {
		case "tls":
			call.Scheme = "https"
		case "denied":
			call.Hostname = "10.0.0.1"
		case "name":
			call.Hostname, call.Host = mark+".invalid", mark+".invalid"
		}
		client := newClient(egress.Config{Resolver: &answers{err: fmt.Errorf("lookup %s", mark)}})
		outcome := client.Post(t.Context(), call)
		text := fmt.Sprintf("%v %+v %#v %s %v %+v %#v", outcome, outcome, outcome, call, call, call, call)
		if outcome.Fault != nil {
			text += fmt.Sprintf("%v %+v %#v %s", outcome.Fault, *outcome.Fault, outcome.Fault, outcome.Fault.Error())
		} else if name != "ok" {
			t.Errorf("%s: no fault", name)
		}
		text += fmt.Sprintf("%v %+v %#v %s %d", call.BasicAuth, call.BasicAuth, *call.BasicAuth, *call.BasicAuth, *call.BasicAuth)
		asJSON, err := json.Marshal(map[string]any{"call": call, "outcome": outcome, "auth": call.BasicAuth})
		if err != nil {
			t.Fatal(err)
		}
		if text += string(asJSON); strings.Contains(text, mark) {
			t.Errorf("%s: %s", name, text)
		}
		if outcome.Fault != nil && strings.Contains(outcome.Fault.Error(), "127.0.0.1") {
			t.Errorf("%s: the sentence names an address", name)
		}
	}
}
