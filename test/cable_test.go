package acceptance

import (
	"io"
	"net"
	"sync"
	"testing"
)

// cable is a connection between a process and a server that a test can hold
// (nothing passes, nothing is lost) or cut (every connection ends, none begins).
type cable struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	moved *sync.Cond
	held  bool
	cut   bool
	conns map[net.Conn]bool
}

// newCable listens on loopback until the test ends.
func newCable(t *testing.T, server string) *cable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{listener: listener, server: server, conns: map[net.Conn]bool{}}
	c.moved = sync.NewCond(&c.mu)
	go c.accept()
	t.Cleanup(func() { _ = listener.Close(); c.set(false, true) })
	return c
}

// addr is where the process finds the server.
func (c *cable) addr() string { return c.listener.Addr().String() }

func (c *cable) hold()  { c.set(true, false) }
func (c *cable) sever() { c.set(false, true) }
func (c *cable) mend()  { c.set(false, false) }

func (c *cable) set(held, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held, c.cut = held, cut
	c.moved.Broadcast()
	if cut {
		for conn := range c.conns {
			_ = conn.Close()
		}
	}
}

func (c *cable) accept() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", c.server)
		if err != nil || !c.keep(near, far) {
			_ = near.Close()
			continue
		}
		go c.carry(near, far)
		go c.carry(far, near)
	}
}

// keep remembers a connection, for the day it is cut. false: that is today.
func (c *cable) keep(near, far net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		_ = far.Close()
		return false
	}
	c.conns[near], c.conns[far] = true, true
	return true
}

// carry moves bytes one way. Bytes that were read while the cable is held wait
// for it to be let go.
func (c *cable) carry(to, from net.Conn) {
	defer c.drop(to, from)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		c.mu.Lock()
		for c.held {
			c.moved.Wait()
		}
		c.mu.Unlock()
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *cable) drop(ends ...io.Closer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range ends {
		_ = e.Close()
		delete(c.conns, e.(net.Conn))
	}
}
