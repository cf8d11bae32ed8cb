// Package rawsink is a receiver for tests that speaks raw TCP. It keeps the
// exact bytes of every request and answers, or fails to, in the way the path
// asks for: /b/<behaviour>/<case>. With it the recorded deliveries can be
// played again: it behaves like the receiver they were recorded with.
//
// It refuses nothing and checks nothing; it listens where it is told, which is
// loopback unless told otherwise. Only tests and demonstrations may import it.
// It imports the standard library.
package rawsink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Config says how a Sink listens. The zero value is a plain receiver on a free
// loopback port.
type Config struct {
	// Addr is where to listen, host:port; empty means a free port of 127.0.0.1.
	Addr string
	// TLS makes every connection a TLS one.
	TLS *tls.Config
	// Wait is called where a behaviour lets time pass (trickle, slow14,
	// infinite, ok_then_close, and the patience of hang); it must come back
	// when ctx ends. Nil waits the real time. Tests shorten or watch it.
	Wait func(ctx context.Context, d time.Duration)
	// Now stamps requests; nil leaves Request.At zero.
	Now func() time.Time
}

// Request is one complete request as it came in.
type Request struct {
	Conn      int       // number of the connection, from 1
	Nth       int       // number of the request on that connection, from 1
	At        time.Time // when it was complete, by Config.Now
	Line      string    // request line
	Behaviour string    // from the path; "status200" when it names none
	Case      string    // from the path; "nocase" when it names none
	Raw       []byte    // every byte of head and body; nil for the case "fast"
}

// Partial is what came on a connection that ended within a request.
type Partial struct {
	Conn int
	Raw  []byte
}

// Sink is a running receiver. Its methods may be called at any time, also
// after Close.
type Sink struct {
	cfg      Config
	listener net.Listener
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced whenever something is recorded
	open     map[net.Conn]struct{}
	conns    int
	requests []Request
	partials []Partial
}

// Start listens and serves until Close.
func Start(cfg Config) (*Sink, error) {
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	if cfg.Wait == nil {
		cfg.Wait = realWait
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("rawsink: listen: %w", err)
	}
	s := &Sink{cfg: cfg, listener: listener, changed: make(chan struct{}), open: map[net.Conn]struct{}{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.running.Add(1)
	go s.accept()
	return s, nil
}

// Close stops listening, cuts every connection and waits until all is quiet.
func (s *Sink) Close() {
	s.cancel()
	s.listener.Close()
	s.mu.Lock()
	for conn := range s.open {
		conn.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Addr is the address it listens on, host:port.
func (s *Sink) Addr() string { return s.listener.Addr().String() }

// Port is the port it listens on.
func (s *Sink) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// URL is the address of a behaviour and case, without credentials.
func (s *Sink) URL(behaviour, name string) string {
	scheme := "http"
	if s.cfg.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + s.Addr() + "/b/" + behaviour + "/" + name
}

// Conns is how many connections were accepted.
func (s *Sink) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// Requests are the complete requests so far, in order of completion.
func (s *Sink) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Case are the complete requests so far for one case.
func (s *Sink) Case(name string) []Request {
	other := func(r Request) bool { return r.Case != name }
	return slices.DeleteFunc(s.Requests(), other)
}

// Partials are the incomplete requests so far. Connections without a byte
// leave none.
func (s *Sink) Partials() []Partial {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.partials)
}

// Wait returns when at least n requests are complete, or with ctx's error.
func (s *Sink) Wait(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		have, changed := len(s.requests), s.changed
		s.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("rawsink: %d of %d requests: %w", have, n, ctx.Err())
		}
	}
}

// accept serves connections until the listener is closed.
func (s *Sink) accept() {
	defer s.running.Done()
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			s.enter(conn)
		}
	}
}

// enter starts serving conn, unless the sink has been closed meanwhile.
func (s *Sink) enter(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		conn.Close()
		return
	}
	s.conns++
	s.open[conn] = struct{}{}
	s.running.Add(1)
	go s.serve(conn, s.conns)
}

// leave forgets conn.
func (s *Sink) leave(conn net.Conn) {
	conn.Close()
	s.mu.Lock()
	delete(s.open, conn)
	s.mu.Unlock()
	s.running.Done()
}

// record changes what is kept and wakes whoever waits.
func (s *Sink) record(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// realWait lets the time pass.
func realWait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
