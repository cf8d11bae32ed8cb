package faults

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// The development server's database can come to a state in which every statement
// ends as interrupted, and stays there: seen with Temporal 1.29.1 on SQLite, at
// least three times in 150 seeds on an overloaded machine (docs/findings.md). Whoever runs such
// a server restarts it, and so does the campaign; it is one fault more.
const (
	interrupted = "interrupted (9)"
	// A healthy server may end some statements so, when callers go away.
	interruptedOften  = 20
	interruptedWithin = 5 * time.Second
	stuckKind         = "Temporal stuck by itself, restarted"
	// logTail is what is looked at of a server's log.
	logTail = 64 << 10
)

// stuck says that a server's statements end as interrupted, one after the other.
func stuck(temporal *devstack.Temporal) bool {
	f, err := os.Open(temporal.LogFile())
	if err != nil {
		return false // it has not said anything yet
	}
	defer func() { _ = f.Close() }()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return false
	}
	tail := make([]byte, min(size, logTail))
	_, err = f.ReadAt(tail, size-int64(len(tail)))
	return err == nil && interruptedLately(string(tail), time.Now()) >= interruptedOften
}

// interruptedLately counts lines of a log.
func interruptedLately(log string, now time.Time) (n int) {
	for line := range strings.Lines(log) {
		stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
		at, err := time.ParseInLocation("2006-01-02T15:04:05.000", stamp, time.Local)
		if err == nil && strings.Contains(line, interrupted) && now.Sub(at) < interruptedWithin {
			n++
		}
	}
	return n
}

// unstick restarts a server that the seed before has left stuck.
func unstick(t *testing.T, on scenario.Servers, total *sum) {
	if !stuck(on.Temporal) {
		return
	}
	total.count(stuckKind)
	on.Temporal.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), serverWithin)
	defer cancel()
	if err := on.Temporal.Restart(ctx); err != nil {
		t.Fatal(err)
	}
}

// watchTemporal does so while a seed is played, unless something is being done to
// the server anyway.
func (w *world) watchTemporal(total *sum) (end func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		look := time.NewTicker(interruptedWithin)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			if stuck(w.on.Temporal) && w.take("Temporal") {
				w.t.Logf("%s", stuckKind)
				unstick(w.t, w.on, total)
				w.give("Temporal")
			}
		}
	}()
	return func() { cancel(); <-done }
}

func TestAStuckServerIsToldFromOneThatIsNot(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 10, 0, time.Local)
	line := func(second, text string) string {
		return "time=2026-12-01T12:00:" + second + ".500 level=ERROR msg=\"" + text + "\"\n"
	}
	for name, tt := range map[string]struct {
		log  string
		want int
	}{
		"nothing":       {"", 0},
		"other errors":  {strings.Repeat(line("09", "context deadline exceeded"), 30), 0},
		"long ago":      {strings.Repeat(line("04", interrupted), 30), 0},
		"now":           {strings.Repeat(line("09", "x: "+interrupted), 30), 30},
		"not a line":    {interrupted + "\n", 0},
		"cut beginning": {"9.500 " + interrupted + "\n" + line("08", interrupted), 1},
	} {
		if got := interruptedLately(tt.log, now); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
