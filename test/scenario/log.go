package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// Line is one structured line of a log: its keys and values.
type Line map[string]any

// Message is the line's message.
func (l Line) Message() string { return l.Text("message") }

// Text is a value that is a string, else "".
func (l Line) Text(key string) string { s, _ := l[key].(string); return s }

// Log collects what a process writes. Its methods may be called at any time.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is everything so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Lines are the complete lines so far that are JSON objects.
func (l *Log) Lines() []Line {
	var lines []Line
	for text := range strings.Lines(l.String()) {
		var line Line
		if strings.HasSuffix(text, "\n") && json.Unmarshal([]byte(text), &line) == nil {
			lines = append(lines, line)
		}
	}
	return lines
}

// Find are the lines whose message contains text and, with a request or hook
// PHID given, that are about it.
func (l *Log) Find(text string, phids ...string) []Line {
	var found []Line
	for _, line := range l.Lines() {
		if strings.Contains(line.Message(), text) && about(line, phids) {
			found = append(found, line)
		}
	}
	return found
}

// Await waits until at least n such lines stand there, and returns all of them.
// A process writes a line after the thing it speaks of: whoever has seen that
// may still have to wait for the line.
func (l *Log) Await(t testing.TB, within time.Duration, n int, text string, phids ...string) (found []Line) {
	t.Helper()
	Until(t, within, func() string { return fmt.Sprintf("%d lines %q %q; there are %d", n, text, phids, len(found)) },
		func() bool { found = l.Find(text, phids...); return len(found) >= n })
	return found
}

func about(line Line, phids []string) bool {
	for _, phid := range phids {
		if line.Text("request") != phid && line.Text("hook") != phid {
			return false
		}
	}
	return true
}

// Tail is the end of the text, at most n lines of it.
func (l *Log) Tail(n int) string {
	lines := strings.SplitAfter(l.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}
