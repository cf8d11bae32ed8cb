package scenario

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Part of an exchange with a server: a fault at the one comes before the
// exchange's effect, a fault at the other after it.
type Part string

// The parts.
const (
	// Question is the client's message.
	Question Part = "question"
	// Answer is what the server says next on that connection. With MySQL, which
	// takes one statement after the other, that is the statement's own answer, and
	// the statement has had its effect when it is held.
	Answer Part = "answer"
)

// Held is a message that a cable keeps back, with everything behind it on its
// connection; other connections go on.
type Held struct {
	what     Part
	text     []byte
	strand   *strand // under the cable's lock
	reached  chan struct{}
	released chan struct{}
	once     sync.Once
}

// Hold keeps back the first message from now on that contains a text (of 256
// bytes at most; the empty one is in whatever comes), or that message's answer.
func (c *Cable) Hold(what Part, text string) *Held {
	h := &Held{what: what, text: []byte(text), reached: make(chan struct{}), released: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, h)
	return h
}

// endsIn says whether the text ends in what was sent, having begun there or
// before.
func (h *Held) endsIn(before, sent []byte) bool {
	begun := before[max(0, len(before)-max(0, len(h.text)-1)):]
	return len(sent) > 0 && bytes.Contains(append(bytes.Clone(begun), sent...), h.text)
}

// wait keeps a strand until the message is released. false: it was dropped, or
// the strand was cut.
func (h *Held) wait(s *strand) bool {
	close(h.reached)
	return s.await(h.released)
}

// Await waits until the message is there and held.
func (h *Held) Await(t testing.TB) {
	t.Helper()
	timer := time.NewTimer(2 * Patience)
	defer timer.Stop()
	select {
	case <-h.reached:
	case <-timer.C:
		t.Fatalf("no %s to be held: %q", h.what, h.text)
	}
}

// Reached says whether the message is there.
func (h *Held) Reached() bool {
	select {
	case <-h.reached:
		return true
	default:
		return false
	}
}

// Release lets the message go, late.
func (h *Held) Release() { h.once.Do(func() { close(h.released) }) }

// Drop loses a message that is held, and resets its connection.
func (h *Held) Drop() {
	c := h.strand.cable
	c.mu.Lock()
	defer c.mu.Unlock()
	h.strand.reset()
}

// Cables connect a process to everything that its site runs on.
type Cables struct{ MariaDB, Temporal *Cable }

// NewCables lays one to the site's MariaDB and one to its Temporal.
func (s *Site) NewCables(t testing.TB) Cables {
	t.Helper()
	return Cables{MariaDB: NewCable(t, s.MariaDB.Addr()), Temporal: NewCable(t, s.TemporalAddress)}
}

// Through are changes to the site's environment that lead a process through
// cables, and other changes with them.
func (s *Site) Through(t testing.TB, c Cables, changes map[string]string) map[string]string {
	t.Helper()
	env := map[string]string{"WAYBILL_TEMPORAL_ADDRESS": c.Temporal.Addr()}
	for _, name := range []string{"WAYBILL_HERALD_DSN", "WAYBILL_DSN"} {
		dsn, err := c.MariaDB.DSN(s.Env()[name])
		if err != nil {
			t.Fatalf("scenario: %v", err)
		}
		env[name] = dsn
	}
	for name, value := range changes {
		env[name] = value
	}
	return env
}

// DSN leads a data source through the cable.
func (c *Cable) DSN(dsn string) (string, error) {
	parsed, err := mysql.ParseDSN(dsn)
	if err != nil || parsed.Net != "tcp" {
		return "", errors.New("not a data source on TCP")
	}
	parsed.Addr = c.Addr()
	return parsed.FormatDSN(), nil
}
