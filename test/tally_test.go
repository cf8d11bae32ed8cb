package acceptance

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// slowness is how long a tally's slow receivers take: more than what counts as
// fast (500 ms), less than any delivery timeout.
const slowness = 700 * time.Millisecond

// tally is a set of receivers, one for each path, that notes when it was called
// about which object. /slow takes its time, /fails refuses the first call about
// an object, /refuses refuses all, /drags takes its time to do so, /hangs does
// not answer; all others say 200.
type tally struct {
	server *httptest.Server
	over   chan struct{}

	mu    sync.Mutex
	about map[string][]time.Time
	first map[string]int // of all calls, which was the first about an object
	calls int
	// refused, when set, are the only objects that /refuses and /drags refuse.
	refused []string
}

func newTally(t *testing.T) *tally {
	c := &tally{about: map[string][]time.Time{}, first: map[string]int{}, over: make(chan struct{})}
	c.server = httptest.NewServer(http.HandlerFunc(c.answer))
	t.Cleanup(func() {
		close(c.over)
		c.server.CloseClientConnections()
		c.server.Close()
	})
	return c
}

// URL is where hooks call one of the receivers.
func (c *tally) URL(path string) string { return c.server.URL + path }

// About is when calls about an object came.
func (c *tally) About(object string) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.about[object]
}

// Calls is how many have come in all.
func (c *tally) Calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// Before is how many had come before the first one about an object.
func (c *tally) Before(object string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first[object] - 1
}

// RefuseOnly makes /refuses and /drags refuse calls about these objects only.
func (c *tally) RefuseOnly(objects []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = objects
}

func (c *tally) refuses(object string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused == nil || slices.Contains(c.refused, object)
}

func (c *tally) note(object string) (nth int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	c.about[object] = append(c.about[object], time.Now())
	if len(c.about[object]) == 1 {
		c.first[object] = c.calls
	}
	return len(c.about[object])
}

func (c *tally) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	object := objectIn(body)
	if object == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	nth := c.note(object)
	switch {
	case r.URL.Path == "/drags" && c.refuses(object):
		c.hold(r, time.After(slowness))
		w.WriteHeader(http.StatusInternalServerError)
	case (r.URL.Path == "/refuses" && c.refuses(object)) || (r.URL.Path == "/fails" && nth == 1):
		w.WriteHeader(http.StatusInternalServerError)
	case r.URL.Path == "/slow":
		c.hold(r, time.After(slowness))
	case r.URL.Path == "/hangs":
		c.hold(r, nil)
	}
}

// hold keeps a call until it has waited enough (never, for nil), its caller has
// gone or the test is over.
func (c *tally) hold(r *http.Request, enough <-chan time.Time) {
	select {
	case <-enough:
	case <-r.Context().Done():
	case <-c.over:
	}
}
