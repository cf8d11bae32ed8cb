package acceptance

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// seed is a new one for each run, unless WAYBILL_TEST_SEED names one to repeat.
func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("WAYBILL_TEST_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("WAYBILL_TEST_SEED: %v", err)
	}
	return n
}

// A hundred processes die at random moments under load, each replaced at once.
// Nothing is lost; a row is sent again only where nobody knew the outcome,
// which its caller's death explains, and only after the lease.
func TestAHundredKillsLoseAndDoubleNothing(t *testing.T) {
	const kills, processes = 100, 4
	y := newYard(t)
	y.load.AddHooks(t, 8, scenario.Fast)
	y.load.AddHooks(t, 4, scenario.Slow)
	y.load.AddHooks(t, 4, scenario.Recovering)
	y.fleet.Launch(t, processes, "serve")
	y.fleet.AwaitReady(t)
	stop := y.load.Stream(t, 2*time.Second, devstack.RetryForever)
	conductor := scenario.Conductor{Seed: seed(t), Every: 700 * time.Millisecond, Moves: []scenario.Move{
		{Kind: "SIGKILL", Play: func(chance *rand.Rand) bool {
			m := y.fleet.Any(t, chance)
			m.Kill()
			m.Restart(t)
			return true
		}},
	}}
	conductor.Conduct(t, kills)
	stop()
	t.Logf("%s; %d rows were queued, %d calls made", conductor.Played(), len(y.load.Rows()), len(y.witness.Calls()))
	v := y.judge(t, 4*patience)
	if n := len(y.fleet.Faults()); n != kills {
		t.Errorf("%d kills, want %d", n, kills)
	}
	// A kill leaves one call at most for each hook that its process has; chosen by
	// chance, that is a fair part of them on average, and most hooks are idle.
	if v.Unknown > kills*len(y.load.Hooks())/processes {
		t.Errorf("%d unknown outcomes of %d kills", v.Unknown, kills)
	}
}

// Phorge's own workers try every row all the time. A clean stop and a kill
// under load give them hooks and rows; nothing is sent twice but what was in
// flight at the kill. Phorge's saves overwrite only what the killed process had
// just finished, which nobody looks back at: no process may report any other.
func TestBesidePhorgeOnlyRowsInFlightAtAKillRepeat(t *testing.T) {
	const hooks = 6
	y := newYard(t)
	y.load.AddHooks(t, 4, scenario.Fast)
	y.load.AddHooks(t, 2, scenario.Slow)
	serve := y.fleet.Launch(t, 1, "serve")[0]
	y.awaitShares(t, hooks)
	phorge := scenario.NewTaskmasters(t, y.load, 3)
	stop := y.load.Stream(t, 200*time.Millisecond, devstack.RetryForever)
	by := func(caller string) (n int) {
		for _, c := range y.witness.Calls() {
			if c.Caller == caller {
				n++
			}
		}
		return n
	}
	more := func(caller string) {
		before := by(caller)
		scenario.Until(t, 2*patience, caller+" makes calls", func() bool { return by(caller) >= before+20 })
	}
	more(scenario.ByWaybill)
	if code := serve.Stop(t); code != 0 {
		t.Errorf("the stop ended with %d", code)
	}
	more(scenario.ByPhorge)
	serve.Restart(t)
	more(scenario.ByWaybill)
	scenario.Until(t, patience, "a call is under way", func() bool { return y.witness.UnderWay() > 0 })
	serve.Kill()
	more(scenario.ByPhorge)
	serve.Restart(t)
	more(scenario.ByWaybill)
	stop()
	y.load.AwaitDone(t, 2*patience)
	phorge.End()
	t.Logf("Phorge's turns: %v", phorge.Turns())
	v := y.judge(t, patience)
	for _, p := range y.fleet.Processes() {
		for _, line := range p.Log.Find("a finished request was overwritten") {
			about := func(o string) bool { return strings.Contains(o, line.Text("request")) }
			if !slices.ContainsFunc(v.Overwrites, about) {
				t.Errorf("nobody overwrote what is reported: %v", line)
			}
		}
	}
	if len(v.Repeats) > hooks {
		t.Errorf("%d repeats for one kill, of at most one row in flight for each of %d hooks", len(v.Repeats), hooks)
	}
}
