package scenario

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
)

// Cable is a TCP connection to a server that a test can handle like one of
// copper: a process that is given its address instead of the server's talks to
// the server through it. MySQL's statements pass in clear, with their values in
// place where the DSN interpolates them (Waybill's pools do); what is said to
// Temporal is compressed.
type Cable struct {
	listener net.Listener
	target   string
	ended    chan struct{}

	mu      sync.Mutex
	flowing chan struct{} // closed while bytes may pass
	refuse  bool
	strands map[*strand]struct{}
	pending []*Held
}

// NewCable lays one to an address, until the test ends.
func NewCable(t testing.TB, target string) *Cable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed by the cleanup
	if err != nil {
		t.Fatalf("scenario: %v", err)
	}
	c := &Cable{
		listener: listener, target: target, ended: make(chan struct{}),
		flowing: make(chan struct{}), strands: map[*strand]struct{}{},
	}
	close(c.flowing)
	t.Cleanup(c.end)
	go c.accept()
	return c
}

// end cuts what there is; the strands' goroutines end by themselves.
func (c *Cable) end() {
	c.listener.Close()
	close(c.ended)
	c.Cut()
}

// Addr is this side's address, host:port.
func (c *Cable) Addr() string { return c.listener.Addr().String() }

// Freeze stops the bytes in both directions; what is sent meanwhile waits.
// Connections stay, new ones are taken and hear nothing, and neither side learns
// of the other's end: a host that has vanished.
func (c *Cable) Freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.flowing:
		c.flowing = make(chan struct{})
	default:
	}
}

// Thaw lets them pass again.
func (c *Cable) Thaw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.flowing:
	default:
		close(c.flowing)
	}
}

// Cut resets every connection, on both sides.
func (c *Cable) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.strands {
		s.reset()
	}
}

// Refuse resets new connections until Accept: nobody listens there.
func (c *Cable) Refuse() { c.setRefuse(true) }

// Accept takes new connections again.
func (c *Cable) Accept() { c.setRefuse(false) }

func (c *Cable) setRefuse(refuse bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = refuse
}

// Gone is Refuse and Cut: the server has gone away.
func (c *Cable) Gone() {
	c.Refuse()
	c.Cut()
}

func (c *Cable) accept() {
	for {
		in, err := c.listener.Accept()
		if err != nil {
			return
		}
		go c.join(in.(*net.TCPConn))
	}
}

// join leads one connection to the server.
func (c *Cable) join(in *net.TCPConn) {
	s := &strand{cable: c, client: in, gone: make(chan struct{})}
	if !c.enter(s) {
		return
	}
	defer c.leave(s)
	if !s.await(c.gate()) {
		return
	}
	out, err := net.Dial("tcp", c.target) //nolint:noctx // loopback answers at once
	if err != nil {
		s.reset()
		return
	}
	if !s.connect(out.(*net.TCPConn)) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { s.pump(in, s.server, s.outward) })
	both.Go(func() { s.pump(s.server, in, s.inward) })
	both.Wait()
}

// enter registers a strand, unless connections are refused.
func (c *Cable) enter(s *strand) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse {
		s.reset()
		return false
	}
	c.strands[s] = struct{}{}
	return true
}

func (c *Cable) leave(s *strand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.strands, s)
	_ = s.client.Close()
	if s.server != nil {
		_ = s.server.Close()
	}
}

// gate is closed when bytes may pass.
func (c *Cable) gate() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flowing
}

// longestText is the most that a hold can look for, over the borders of reads.
const longestText = 256

// strand is one connection through a cable.
type strand struct {
	cable          *Cable
	client, server *net.TCPConn
	cut            sync.Once
	gone           chan struct{} // closed when it was cut

	// The rest is the cable's lock's.
	tail   []byte // the end of what the client has sent
	answer *Held  // what waits for the server's next bytes
}

// reset ends the strand with a reset on both sides. The cable's lock is held,
// or the strand is not known to it.
func (s *strand) reset() {
	s.cut.Do(func() {
		close(s.gone)
		for _, conn := range []*net.TCPConn{s.client, s.server} {
			if conn != nil {
				_ = conn.SetLinger(0)
				_ = conn.Close()
			}
		}
	})
}

// connect adds the server's side. false: the strand was cut meanwhile.
func (s *strand) connect(server *net.TCPConn) bool {
	s.cable.mu.Lock()
	defer s.cable.mu.Unlock()
	select {
	case <-s.gone:
		_ = server.Close()
		return false
	default:
		s.server = server
		return true
	}
}

// await waits for something to be over. false: the strand is.
func (s *strand) await(over <-chan struct{}) bool {
	select {
	case <-over:
		return true
	case <-s.gone:
	case <-s.cable.ended:
	}
	return false
}

// pump carries one direction to its end. held is asked before bytes pass.
func (s *strand) pump(from, to *net.TCPConn, held func([]byte) *Held) {
	// A page of MySQL's or Temporal's traffic; the size decides nothing.
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if h := held(buffer[:n]); h != nil && !h.wait(s) {
			return
		}
		// After the hold: a cable that froze meanwhile is frozen for this too.
		if !s.await(s.cable.gate()) {
			return
		}
		if n > 0 {
			_, _ = to.Write(buffer[:n])
		}
		if errors.Is(err, io.EOF) {
			_ = to.CloseWrite()
			return
		}
		if err != nil {
			s.cable.mu.Lock()
			s.reset()
			s.cable.mu.Unlock()
			return
		}
	}
}

// outward looks for texts in what the client sends. The bytes in which one ends
// are kept back, so that the server never has the whole of a message.
func (s *strand) outward(sent []byte) *Held {
	s.cable.mu.Lock()
	defer s.cable.mu.Unlock()
	before := s.tail
	s.tail = append(slices.Clone(before), sent...)
	s.tail = s.tail[max(0, len(s.tail)-longestText):]
	for i, h := range s.cable.pending {
		if !h.endsIn(before, sent) {
			continue
		}
		s.cable.pending = slices.Delete(s.cable.pending, i, i+1)
		h.strand = s
		if h.what == Answer {
			s.answer = h
			return nil
		}
		return h
	}
	return nil
}

// inward keeps back the server's bytes when an answer is to be held.
func (s *strand) inward(sent []byte) *Held {
	s.cable.mu.Lock()
	defer s.cable.mu.Unlock()
	h := s.answer
	if len(sent) == 0 {
		return nil
	}
	s.answer = nil
	return h
}
