package egress_test

import (
	"strings"
	"testing"

	"waybill/internal/egress"
	"waybill/internal/egress/rawsink"
)

// outcomes is what each behaviour of the receiver must come to: a status, or
// the code of a fault after the request was sent.
var outcomes = map[string]struct{ status, code int }{
	"ok": {status: 200}, "fast": {status: 200},
	"status200": {status: 200}, "status204": {status: 204},
	"status401": {status: 401}, "status503": {status: 503},
	"cont100": {status: 200}, "early103": {status: 200}, "proc102": {status: 200},
	"upg101":  {status: 101},
	"conn200": {status: 200}, "http10": {status: 200}, "h15": {status: 200},
	"noreason": {status: 200}, "noreasonsp": {status: 200},
	"lfonly": {status: 200}, "nohdr": {status: 200},
	// Compression is not asked for and not expanded: the status decides.
	"gzip": {status: 200}, "gzipbad": {status: 200}, "gzipempty": {status: 200}, "gzipupper": {status: 200},
	"deflate": {status: 200}, "gzip204": {status: 204}, "gzipbad500": {status: 500},
	// More than is read: the status decides.
	"huge": {status: 200}, "infinite": {status: 200},
	// Within the limit of 1 MiB.
	"bighdr": {status: 200}, "manyhdr": {status: 200},
	"second_close": {status: 200}, "ok_then_close": {status: 200}, "early_response": {status: 500},

	"close":   {code: egress.CodeNoAnswer},
	"reset":   {code: egress.CodeReceive},
	"garbage": {code: egress.CodeNotHTTP}, "ssh": {code: egress.CodeNotHTTP}, "h2": {code: egress.CodeNotHTTP},
	"headeronly": {code: egress.CodeNotHTTP},
	// net/http refuses a NUL in a field.
	"nullhdr": {code: egress.CodeNotHTTP},
	"partial": {code: egress.CodeTruncated}, "partialchunk": {code: egress.CodeTruncated},
	"badchunk": {code: egress.CodeReceive},
	"hang":     {code: egress.CodeTimeout}, "hanghdr": {code: egress.CodeTimeout},
	"trickle": {code: egress.CodeTimeout}, "slow14": {code: egress.CodeTimeout},
}

func TestEveryBehaviour(t *testing.T) {
	sink := newSink(t, rawsink.Config{})
	client := newClient(egress.Config{})
	for _, name := range rawsink.Behaviours() {
		t.Run(name, func(t *testing.T) {
			expected, known := outcomes[name]
			if strings.HasPrefix(name, "redir302") {
				// Never followed, wherever it leads.
				expected.status, known = 302, true
			}
			if !known {
				t.Fatal("no outcome is defined")
			}
			call := callTo(sink.Port(), "/b/"+name+"/"+name)
			if expected.code == egress.CodeTimeout {
				call.Timeout = brief
			}
			before := sink.Conns()
			got := client.Post(t.Context(), call)
			if expected.code != 0 {
				want(t, got, 0, sent(expected.code))
			} else {
				want(t, got, expected.status, nil)
			}
			// One attempt, one connection, one body.
			if n := len(sink.Case(name)); n != 1 || sink.Conns() != before+1 || len(sink.Partials()) != 0 {
				t.Errorf("%d requests on %d connections", n, sink.Conns()-before)
			}
			if got.Peer.Port() != uint16(sink.Port()) || got.Duration <= 0 {
				t.Errorf("peer %v, duration %v", got.Peer, got.Duration)
			}
		})
	}
	if nothing := sink.Case("nocase"); len(nothing) != 0 {
		t.Errorf("requests nobody made: %v", nothing)
	}
}

func TestEveryStatus(t *testing.T) {
	sink := newSink(t, rawsink.Config{})
	client := newClient(egress.Config{})
	for _, status := range []string{"200", "201", "226", "299", "300", "301", "302", "303", "304", "307", "308", "399",
		"400", "404", "410", "418", "429", "499", "500", "502", "503", "504", "599", "600", "999"} {
		t.Run(status, func(t *testing.T) {
			got := client.Post(t.Context(), callTo(sink.Port(), "/b/status"+status+"/x"))
			if got.Fault != nil || status != itoa(got.Status) {
				t.Errorf("%d, %v", got.Status, got.Fault)
			}
		})
	}
}
