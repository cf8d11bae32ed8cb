package scenario

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Gate is a receiver that holds every call until a test lets it go, and counts
// how many it holds at once.
type Gate struct {
	server *httptest.Server

	mu            sync.Mutex
	open          bool
	status        int
	answers       chan int
	calls, now    int
	most          int
	closedByOwner chan struct{}
}

// NewGate listens on loopback until the test ends.
func NewGate(t testing.TB) *Gate {
	g := &Gate{answers: make(chan int), closedByOwner: make(chan struct{})}
	g.server = httptest.NewServer(http.HandlerFunc(g.hold))
	t.Cleanup(func() {
		close(g.closedByOwner)
		g.server.CloseClientConnections()
		g.server.Close()
	})
	return g
}

// URL is where hooks call it.
func (g *Gate) URL() string { return g.server.URL + "/" }

func (g *Gate) hold(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	g.enter()
	defer g.leave()
	if status, open := g.opened(); open {
		w.WriteHeader(status)
		return
	}
	select {
	case status := <-g.answers:
		w.WriteHeader(status)
	case <-r.Context().Done():
	case <-g.closedByOwner:
	}
}

func (g *Gate) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	g.now++
	g.most = max(g.most, g.now)
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now--
}

func (g *Gate) opened() (status int, open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.status, g.open
}

// Open answers calls from now on at once; those held stay held.
func (g *Gate) Open(status int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.status, g.open = status, true
}

// Hold keeps calls again from now on, and counts anew how many at once.
func (g *Gate) Hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open, g.most = false, g.now
}

// Answer lets one held call go; it waits for one.
func (g *Gate) Answer(t testing.TB, status int) {
	t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case g.answers <- status:
	case <-timer.C:
		t.Fatal("the gate holds no call that could be answered")
	}
}

// AwaitCall waits until a call is held.
func (g *Gate) AwaitCall(t testing.TB) {
	t.Helper()
	Until(t, Patience, "a call arrives at the gate", func() bool { return g.Held() > 0 })
}

// Held is how many calls it holds.
func (g *Gate) Held() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now
}

// Calls is how many have come.
func (g *Gate) Calls() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}

// Most is how many it has had at once.
func (g *Gate) Most() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.most
}
