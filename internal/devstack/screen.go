package devstack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// floodLines is how many deliveries within one second are shown one by one:
// what a person can still read. Above it a second becomes one line.
const floodLines = 6

// ScreenConfig configures a Screen.
type ScreenConfig struct {
	Out   io.Writer        // required
	Hooks func() []Hook    // for the names; required
	Clock func() time.Time // required
	Color bool             // escape sequences for colours
	Quiet bool             // no deliveries; notes are shown all the same
}

// Screen turns Waybill's log into lines for somebody who watches: one per
// attempt, or one per second when there are many. It is an io.Writer for JSON
// log lines, one or more complete ones per Write, and its methods may be called
// from any goroutine.
type Screen struct {
	cfg ScreenConfig

	mu     sync.Mutex
	second int64 // that the counts below belong to
	shown  int   // lines shown in it
	folded tally // attempts of it that were not
	flood  bool  // the second before was too much: this one is folded from the start
}

// NewScreen makes a screen.
func NewScreen(cfg ScreenConfig) *Screen { return &Screen{cfg: cfg} }

// Write shows what there is to show of some lines of the log. It never fails:
// the log must go on when a terminal is gone. One that is held (Ctrl-S) blocks
// it, and with it whoever logs, until it is let go (Ctrl-Q): the demo stands
// still like its screen.
func (s *Screen) Write(log []byte) (int, error) {
	for line := range bytes.Lines(log) {
		var e logEntry
		if json.Unmarshal(line, &e) == nil {
			s.show(e)
		}
	}
	return len(log), nil
}

// Say shows a line of somebody else's between the deliveries.
func (s *Screen) Say(format string, values ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(s.cfg.Clock())
	s.print(fmt.Sprintf(format, values...))
}

// Tick shows the summary of a second that is over. Call it about once a second.
func (s *Screen) Tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(s.cfg.Clock())
}

func (s *Screen) show(e logEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Clock()
	s.turn(now)
	name := hookName(e.Hook, s.cfg.Hooks())
	if e.Message != attemptMessage {
		if note := e.note(now, name); note != "" {
			s.print(s.paint(yellow, note))
		}
		return
	}
	if s.cfg.Quiet {
		return
	}
	d := e.delivery(name)
	if s.flood || s.shown == floodLines {
		s.folded.add(d)
		return
	}
	s.shown++
	s.print(s.paint(d.kind.color(), d.line(now)))
}

// turn ends the second before, if now is another one.
func (s *Screen) turn(now time.Time) {
	if now.Unix() == s.second {
		return
	}
	if s.folded.total > 0 {
		s.print(s.folded.line(time.Unix(s.second, 0).In(now.Location()), s.shown > 0))
	}
	s.flood = s.shown+s.folded.total > floodLines
	s.second, s.shown, s.folded = now.Unix(), 0, tally{}
}

func (s *Screen) print(line string) { fmt.Fprintln(s.cfg.Out, line) }

// The colours of ECMA-48, readable on light and on dark.
const (
	plainText = ""
	red       = "31"
	yellow    = "33"
)

func (s *Screen) paint(color, text string) string {
	if !s.cfg.Color || color == plainText {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}
