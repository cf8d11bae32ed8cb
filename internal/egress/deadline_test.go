package egress_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"waybill/internal/egress"
	"waybill/internal/egress/rawsink"
)

// stuck is a resolver and a dialer that come back when their context ends.
type stuck struct{ entered chan struct{} }

func (s stuck) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	s.entered <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s stuck) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	s.entered <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// stages are the places where an exchange can hang. Each closes or sends on
// entered when the attempt has reached it.
func stages(t *testing.T) map[string]struct {
	cfg      egress.Config
	call     egress.Call
	entered  chan struct{}
	bodySent bool
} {
	type stage = struct {
		cfg      egress.Config
		call     egress.Call
		entered  chan struct{}
		bodySent bool
	}
	all := map[string]stage{}
	add := func(name string, bodySent bool, answer string) *stage {
		s := stage{entered: make(chan struct{}, 8), bodySent: bodySent}
		r := serve(t, func(conn net.Conn) {
			if answer != "" {
				readAll(conn)
				_, _ = io.WriteString(conn, answer)
			}
			s.entered <- struct{}{}
			awaitClose(conn)
		})
		s.call = callTo(r.port(), "/")
		all[name] = s
		return &s
	}
	s := add("lookup", false, "")
	s.cfg.Resolver, s.call.Hostname = stuck{s.entered}, "name.example"
	all["lookup"] = *s
	s = add("connect", false, "")
	s.cfg.Dialer = stuck{s.entered}
	all["connect"] = *s
	s = add("handshake", false, "")
	s.call.Scheme = "https"
	all["handshake"] = *s
	s = add("write", true, "")
	s.call.Body = bytes.Repeat([]byte("b"), 8<<20)
	all["write"] = *s
	add("silence", true, "")
	add("after an interim answer", true, "HTTP/1.1 100 Continue\r\n\r\n")
	add("head", true, "HTTP/1.1 200 OK\r\nX: y")
	add("body", true, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
	add("body in chunks", true, chunkedHead+"3\r\nabc\r\n")
	add("body to the end", true, "HTTP/1.0 200 OK\r\n\r\nabc")
	return all
}

// TestTimeoutEverywhere lets the time run out in every stage.
func TestTimeoutEverywhere(t *testing.T) {
	for name, s := range stages(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.call.Timeout = brief
			if name == "write" {
				s.call.Timeout *= 4 // laying out 8 MiB takes its time under the race detector
			}
			got := newClient(s.cfg).Post(t.Context(), s.call)
			want(t, got, 0, &egress.Fault{Code: egress.CodeTimeout, Timeout: true, BodySent: s.bodySent})
			if got.Duration < s.call.Timeout || got.Duration > 10*s.call.Timeout {
				t.Errorf("took %v of %v", got.Duration, s.call.Timeout)
			}
		})
	}
}

// TestDeadlineOfTheContext counts like the call's own.
func TestDeadlineOfTheContext(t *testing.T) {
	s := stages(t)["silence"]
	ctx, cancel := context.WithTimeout(t.Context(), brief)
	defer cancel()
	want(t, newClient(s.cfg).Post(ctx, s.call), 0, sent(egress.CodeTimeout))
}

// TestCancelEverywhere withdraws the attempt in every stage; the outcome tells
// whether the receiver may have the request.
func TestCancelEverywhere(t *testing.T) {
	for name, s := range stages(t) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { <-s.entered; cancel() }()
			got := newClient(s.cfg).Post(ctx, s.call)
			fault := &egress.Fault{Code: egress.CodeCancelled, BodySent: s.bodySent}
			if name == "write" || name == "silence" {
				// The receiver has accepted; whether the client was writing
				// yet cannot be seen from outside.
				fault.BodySent = got.Fault != nil && got.Fault.BodySent
			}
			want(t, got, 0, fault)
		})
	}
}

func TestNothingIsOpenedForAnEndedContext(t *testing.T) {
	sink := newSink(t, rawsink.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, newClient(egress.Config{}).Post(ctx, callTo(sink.Port(), "/")), 0, unsent(egress.CodeCancelled))
	ctx, cancel = context.WithTimeout(t.Context(), 0)
	defer cancel()
	want(t, newClient(egress.Config{}).Post(ctx, callTo(sink.Port(), "/")), 0, unsent(egress.CodeTimeout))
	if sink.Conns() != 0 {
		t.Errorf("%d connections", sink.Conns())
	}
}

// TestZeroTimeoutIsTheDefault would fail at once if zero meant no time.
func TestZeroTimeoutIsTheDefault(t *testing.T) {
	sink := newSink(t, rawsink.Config{})
	call := callTo(sink.Port(), "/b/ok/x")
	call.Timeout = 0
	client := egress.New(egress.Config{Policy: loopback()})
	got := client.Post(t.Context(), call)
	want(t, got, 200, nil)
	if got.Duration != 0 {
		t.Errorf("duration %v without a clock", got.Duration)
	}
}

func TestRefused(t *testing.T) {
	want(t, newClient(egress.Config{}).Post(t.Context(), callTo(closedPort(t), "/")), 0, unsent(egress.CodeConnect))
}

// closedPort is a port of 127.0.0.1 where nobody listens.
func closedPort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// TestDurationIsMeasuredByTheClockGiven uses one that jumps a second per look.
func TestDurationIsMeasuredByTheClockGiven(t *testing.T) {
	sink := newSink(t, rawsink.Config{})
	now := time.Unix(0, 0)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	got := newClient(egress.Config{Now: clock}).Post(t.Context(), callTo(sink.Port(), "/b/ok/x"))
	if want(t, got, 200, nil); got.Duration != time.Second {
		t.Errorf("duration %v", got.Duration)
	}
}
