package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/test/scenario"
)

// A process that stands still during a POST finds the answer when it runs again,
// after the POST's time is over: it is recorded as it came, not as a timeout and
// not as unknown, and the row is not sent again.
func TestAnAnswerDuringAStandstillIsRecorded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		still  time.Duration
		status int
		want   string
	}{
		"short, 200":                      {3 * time.Second, 200, "sent"},
		"short, 503":                      {3 * time.Second, 503, "failed"},
		"far beyond the POST's time":      {5 * time.Second, 200, "sent"},
		"far beyond the POST's time, 503": {5 * time.Second, 503, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLane(t, map[string]string{"WAYBILL_HERALD_DELIVERY_TIMEOUT": "2s"})
			gate := scenario.NewGate(t)
			r := queue(t, l.Site, hook(t, l.Site, gate.URL()), l.object, never)
			gate.AwaitCall(t)
			standStill(t, l.serve)
			gate.Answer(t, c.status)
			scenario.Never(t, c.still, "a stopped process writes", func() bool { return row(t, l.Site, r.PHID).Status != "queued" })
			l.serve.Signal(syscall.SIGCONT)
			scenario.Until(t, patience, "the row ends", func() bool { return row(t, l.Site, r.PHID).Status != "queued" })
			if got := row(t, l.Site, r.PHID); got.Status != c.want || ended(got) == timedOut {
				t.Errorf("row is %s with %s, the receiver has answered %d", got.Status, ended(got), c.status)
			}
			if n := gate.Calls(); n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// standStill stops a process and waits until each of its threads has stopped:
// one that still runs could read what comes next.
func standStill(t *testing.T, p *scenario.Process) {
	t.Helper()
	p.Signal(syscall.SIGSTOP)
	scenario.Until(t, patience, "every thread has stopped", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.PID()))
		for _, file := range threads {
			status, err := os.ReadFile(file)
			if err == nil && !strings.Contains(string(status), "\nState:\tT") {
				return false
			}
		}
		return true // a system without /proc: at once
	})
}
