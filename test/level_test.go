package acceptance

import (
	"strings"
	"syscall"
	"testing"

	"waybill/test/scenario"
)

// What a process logs is changed while it runs, and back.
func TestTheLogLevelFollowsSignals(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	h, failing := l.hook(t, "status200", "level"), l.hook(t, "status503", "level-failing")
	debug := func() int { return strings.Count(l.serve.Log.String(), `"level":"debug"`) }
	deliver := func() { await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "sent", "okay") }
	deliver()
	if n := debug(); n > 0 {
		t.Errorf("%d debug lines at info", n)
	}
	l.serve.Signal(syscall.SIGUSR1)
	l.serve.Log.Await(t, patience, 1, "log level changed by a signal")
	r := queue(t, l.Site, failing, l.object, forever)
	l.receiver.Await(t, "level-failing", 3, patience) // retries are activities, of which the SDK says much
	scenario.Until(t, patience, "everything is logged", func() bool { return debug() > 0 })
	if err := l.Collect(t.Context(), r.PHID); err != nil {
		t.Fatal(err)
	}
	l.serve.Signal(syscall.SIGUSR2)
	l.serve.Log.Await(t, patience, 2, "log level changed by a signal")
	deliver() // what was being written when the level changed is out by then
	n := debug()
	deliver()
	if more := debug() - n; more > 0 {
		t.Errorf("%d debug lines at info again", more)
	}
	if code := l.serve.Stop(t); code != 0 {
		t.Errorf("stop ended with %d", code)
	}
}
