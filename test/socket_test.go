package acceptance

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// peer is a receiver at the level of sockets. It does something rude on its
// first connection and answers well on all others, with connections that it
// offers to keep.
type peer struct {
	net.Listener
	rude func(*net.TCPConn, *bufio.Reader)

	mu           sync.Mutex
	conns, posts int
}

func newPeer(t *testing.T, rude func(*net.TCPConn, *bufio.Reader)) *peer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	p := &peer{Listener: listener, rude: rude}
	go func() {
		for n := 1; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn.(*net.TCPConn), n)
		}
	}()
	return p
}

func (p *peer) serve(conn *net.TCPConn, n int) {
	defer func() { _ = conn.Close() }()
	p.count(1, 0)
	in := bufio.NewReader(conn)
	if n == 1 {
		p.rude(conn, in)
		return
	}
	for readPOST(in) == nil {
		p.count(0, 1)
		_, _ = io.WriteString(conn, wellAnswered)
	}
}

const wellAnswered = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"

// readPOST reads one request with its body.
func readPOST(in *bufio.Reader) error {
	request, err := http.ReadRequest(in)
	if err == nil {
		_, err = io.Copy(io.Discard, request.Body)
	}
	return err
}

func (p *peer) count(conns, posts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns += conns
	p.posts += posts
}

func (p *peer) counted() (conns, posts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns, p.posts
}

// reset makes the connection's end a reset instead of a farewell.
func reset(conn *net.TCPConn) { _ = conn.SetLinger(0) }

// rudeness is what a peer may do to a connection, by when it does it. attempts
// is how many a row needs: one where the answer came first.
var rudeness = map[string]struct {
	attempts int
	act      func(*net.TCPConn, *bufio.Reader)
}{
	"reset before reading": {2, func(c *net.TCPConn, _ *bufio.Reader) { reset(c) }},
	"close before reading": {2, func(*net.TCPConn, *bufio.Reader) {}},
	"reset within the head": {2, func(c *net.TCPConn, in *bufio.Reader) {
		_, _ = in.ReadString('\n')
		reset(c)
	}},
	"reset within the body": {2, func(c *net.TCPConn, in *bufio.Reader) {
		if request, err := http.ReadRequest(in); err == nil {
			_, _ = io.CopyN(io.Discard, request.Body, request.ContentLength/2)
		}
		reset(c)
	}},
	"reset after the body": {2, func(c *net.TCPConn, in *bufio.Reader) { _ = readPOST(in); reset(c) }},
	"close after the body": {2, func(_ *net.TCPConn, in *bufio.Reader) { _ = readPOST(in) }},
	"reset within the answer": {2, func(c *net.TCPConn, in *bufio.Reader) {
		_ = readPOST(in)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-")
		reset(c)
	}},
	"close after the answer": {1, func(c *net.TCPConn, in *bufio.Reader) {
		_ = readPOST(in)
		_, _ = io.WriteString(c, wellAnswered)
	}},
}

// A connection may die at any moment of a POST, and a peer may offer to keep it
// and break that word. An attempt is one connection with one body all the same:
// nothing below the attempt repeats it, and none rides on an earlier connection.
func TestAnAttemptIsOneBodyHoweverTheConnectionDies(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	for when, rude := range rudeness {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, rude.act)
			h := hook(t, l.Site, fmt.Sprintf("http://%s/", p.Addr()))
			var rows []devstack.Row
			for range 2 { // one after the other: they share whatever is kept
				r := queue(t, l.Site, h, l.object, forever)
				await(t, l.Site, r.PHID, "sent", "okay")
				rows = append(rows, r)
			}
			scenario.Until(t, patience, "every attempt is logged", func() bool { return attempts(l, rows...) == rude.attempts+1 })
			if conns, posts := p.counted(); conns != rude.attempts+1 || posts != rude.attempts {
				t.Errorf("%d connections and %d good POSTs in %d attempts", conns, posts, attempts(l, rows...))
			}
		})
	}
}

func attempts(l lane, rows ...devstack.Row) (n int) {
	for _, r := range rows {
		n += len(l.serve.Log.Find("attempt", r.PHID))
	}
	return n
}
