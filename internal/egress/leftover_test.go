package egress_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"waybill/internal/egress"
)

// standstill is a dialer for a process that stands still between its request
// and the end of its time: what the receiver answers meanwhile is in the
// kernel, and the first thing that a read learns is that the time is over.
type standstill struct {
	received chan struct{} // closed when the receiver has read the request
	still    chan struct{} // closed when nothing is read any more
	answered chan struct{} // closed when the receiver is done
	once     sync.Once
}

func newStandstill() *standstill {
	return &standstill{received: make(chan struct{}), still: make(chan struct{}), answered: make(chan struct{})}
}

func (s *standstill) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	over, stop := context.WithCancel(context.Background())
	return &stalled{TCPConn: conn.(*net.TCPConn), s: s, over: over, stop: stop}, nil
}

// stalled is that process's connection. Its SyscallConn is the real one.
type stalled struct {
	*net.TCPConn
	s    *standstill
	over context.Context
	stop context.CancelFunc

	mu       sync.Mutex
	deadline time.Time
}

// SetDeadline notes the end of the attempt's time; the one in the past is the
// guard's, when the context has ended.
func (c *stalled) SetDeadline(d time.Time) error {
	c.mu.Lock()
	c.deadline = d
	c.mu.Unlock()
	if !time.Now().Before(d) {
		c.stop()
	}
	return c.TCPConn.SetDeadline(d)
}

// Read is the real one until the receiver has the request; then it waits for
// the receiver to have answered and for the time to be over.
func (c *stalled) Read(p []byte) (int, error) {
	for {
		select {
		case <-c.s.received:
			c.s.once.Do(func() { close(c.s.still) })
			<-c.s.answered
			<-c.over.Done()
			_ = c.SetReadDeadline(time.Unix(1, 0))
			return c.TCPConn.Read(p)
		default:
		}
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		n, err := c.TCPConn.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
}

// answers is a receiver that answers while its caller stands still.
func (s *standstill) answers(t *testing.T, security *tls.Config, answer string, hangUp bool) *receiver {
	return serve(t, func(conn net.Conn) {
		tcp := conn
		if security != nil {
			conn = tls.Server(conn, security)
		}
		readAll(conn)
		close(s.received)
		<-s.still
		_, _ = io.WriteString(conn, answer)
		if hangUp {
			_ = tcp.(*net.TCPConn).CloseWrite()
		}
		close(s.answered)
		awaitClose(tcp)
	})
}

// What is there in full when the time is over counts, however it is framed;
// what is not complete stays a timeout.
func TestAnAnswerThatCameWhileWeStoodStillCounts(t *testing.T) {
	late := sent(egress.CodeTimeout)
	ca := newAuthority(t)
	for name, tt := range map[string]struct {
		answer string
		hangUp bool
		status int
		fault  *egress.Fault
	}{
		"nothing":                {"", false, 0, late},
		"by length":              {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n", false, 200, nil},
		"a failure":              {"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n", false, 503, nil},
		"no body":                {"HTTP/1.1 204 X\r\n\r\n", false, 204, nil},
		"chunks":                 {chunkedHead + "3\r\nok\n\r\n0\r\n\r\n", false, 200, nil},
		"long":                   {"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n" + strings.Repeat("x", 50000), false, 200, nil},
		"after an interim":       {"HTTP/1.1 103 E\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false, 200, nil},
		"to the end":             {"HTTP/1.0 200 OK\r\n\r\nabc", true, 200, nil},
		"to an end not come":     {"HTTP/1.0 200 OK\r\n\r\nabc", false, 0, late},
		"an interim only":        {"HTTP/1.1 100 Continue\r\n\r\n", false, 0, late},
		"half a head":            {"HTTP/1.1 200 OK\r\nX: y", false, 0, late},
		"head without its body":  {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", false, 0, late},
		"half a body":            {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", false, 0, late},
		"chunks without an end":  {chunkedHead + "3\r\nok\n\r\n", false, 0, late},
		"hung up":                {"", true, 0, sent(egress.CodeNoAnswer)},
		"hung up within a body":  {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", true, 0, sent(egress.CodeTruncated)},
		"something else than it": {"SSH-2.0-x\r\n", false, 0, sent(egress.CodeNotHTTP)},
	} {
		for kind, security := range map[string]*tls.Config{"http": nil, "https": ca.server(t, nil)} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				s := newStandstill()
				r := s.answers(t, security, tt.answer, tt.hangUp)
				call := callTo(r.port(), "/")
				call.Scheme, call.Timeout = kind, brief
				got := newClient(egress.Config{Dialer: s, RootCAs: ca.pool()}).Post(t.Context(), call)
				want(t, got, tt.status, tt.fault)
			})
		}
	}
}

// The same for an attempt that is withdrawn: a known end is better than an
// unknown one.
func TestAnAnswerThatIsThereWhenTheAttemptIsWithdrawnCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		status int
		fault  *egress.Fault
	}{
		"complete": {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, nil},
		"begun":    {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 0, sent(egress.CodeCancelled)},
		"nothing":  {"", 0, sent(egress.CodeCancelled)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStandstill()
			r := s.answers(t, nil, tt.answer, false)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-s.answered; cancel() }()
			want(t, newClient(egress.Config{Dialer: s}).Post(ctx, callTo(r.port(), "/")), tt.status, tt.fault)
		})
	}
}

// A receiver that never stops sending does not keep the attempt alive: what is
// read after its time has the bounds of any answer.
func TestAnEndlessAnswerEndsWithItsTime(t *testing.T) {
	s := newStandstill()
	r := serve(t, func(conn net.Conn) {
		readAll(conn)
		close(s.received)
		<-s.still
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		close(s.answered)
		for line := strings.Repeat("X: y\r\n", 1000); ; {
			if _, err := io.WriteString(conn, line); err != nil {
				return
			}
		}
	})
	call := callTo(r.port(), "/")
	call.Timeout = brief
	got := newClient(egress.Config{Dialer: s}).Post(t.Context(), call)
	if got.Fault == nil || (got.Fault.Code != egress.CodeTimeout && got.Fault.Code != egress.CodeReceive) {
		t.Errorf("ended with %+v", got)
	}
}
