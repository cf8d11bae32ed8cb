package acceptance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// yard is a site with a fleet, a load and everything that judges them.
type yard struct {
	*scenario.Site
	fleet   *scenario.Fleet
	load    *scenario.Load
	journal *scenario.Journal
	witness *scenario.Witness
	rules   scenario.Rules
}

// newYard makes one. The receiver gets 4 s: on a busy machine 1 s is too
// short for some answers. The breaker, which would stop hooks that are to fail
// and recover, is out of the way.
func newYard(t *testing.T) yard {
	t.Helper()
	return yardOf(t, &program)
}

// yardOf is newYard with another program.
func yardOf(t *testing.T, with *scenario.Binary) yard {
	t.Helper()
	settings := slowLease()
	settings["WAYBILL_HERALD_BREAKER_THRESHOLD"] = "100000"
	site := scenario.NewSite(t, with)
	y := yard{
		Site: site, journal: scenario.NewJournal(t, site.Phorge, time.Now), fleet: scenario.NewFleet(site, settings, time.Now),
		// An answer is written within the allowance or given up.
		rules: scenario.Rules{Lease: leaseOfSlow, Backoff: backoff, WriteWithin: time.Second},
	}
	y.witness = scenario.NewWitness(t, scenario.WitnessConfig{Now: time.Now, Callers: y.fleet.PIDs})
	y.load = scenario.NewLoad(t, site, y.witness)
	return y
}

// judge waits for the end of the load and reads the evidence.
func (y yard) judge(t *testing.T, within time.Duration) scenario.Verdict {
	t.Helper()
	y.load.AwaitDone(t, within)
	v := scenario.Gather(t, y.load, y.journal, y.fleet, y.rules).Judge()
	v.Report(t)
	for _, r := range v.Repeats {
		if len(v.Wrong) > 0 {
			y.logsAbout(t, r.Row)
		}
	}
	return v
}

// logsAbout shows what the processes said about a row.
func (y yard) logsAbout(t *testing.T, row string) {
	t.Helper()
	for _, p := range y.fleet.Processes() {
		for _, line := range p.Log.Find("", row) {
			t.Logf("process %d about %s: %v", p.PID(), row, line)
		}
	}
}

// owners counts hooks by the process that is recorded to own them.
func (y yard) owners(t *testing.T) map[string]int {
	t.Helper()
	rows, err := y.DB.QueryContext(t.Context(), "SELECT instance, COUNT(*) FROM "+y.Ledger+
		".hook_owner WHERE released_at IS NULL GROUP BY instance")
	if err != nil {
		return nil // the first process makes the table
	}
	defer func() { _ = rows.Close() }()
	all := map[string]int{}
	for rows.Next() {
		var instance string
		var n int
		if err := rows.Scan(&instance, &n); err != nil {
			t.Fatal(err)
		}
		all[instance] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// awaitShares waits until hooks are owned in these numbers, smallest first.
func (y yard) awaitShares(t *testing.T, want ...int) {
	t.Helper()
	var got map[string]int
	scenario.Until(t, 2*patience, func() string { return fmt.Sprintf("shares %v; they are %v", want, got) }, func() bool {
		got = y.owners(t)
		return slices.Equal(slices.Sorted(maps.Values(got)), want)
	})
}

// callers are the processes that have made calls.
func (y yard) callers() map[int]int {
	n := map[int]int{}
	for _, c := range y.witness.Calls() {
		if c.PID != 0 { // else it was gone when it was looked for
			n[c.PID]++
		}
	}
	return n
}

// Eight processes fall upon 2,000 rows at once. Every row is POSTed once, those
// that fail once more, and never two at a time to one hook, although the hooks
// change hands while the processes find each other.
func TestEightProcessesSendTwoThousandRowsOnce(t *testing.T) {
	const rowsEach, hooks, recovering = 100, 20, 3
	y := newYard(t)
	y.load.AddHooks(t, 13, scenario.Fast)
	y.load.AddHooks(t, 4, scenario.Slow)
	y.load.AddHooks(t, recovering, scenario.Recovering)
	y.load.Queue(t, rowsEach, devstack.RetryForever)
	begun := time.Now()
	y.fleet.Launch(t, 8, "serve")
	v := y.judge(t, 5*patience)
	t.Logf("%d calls by %d processes took %v with their start", v.Calls, len(y.callers()), time.Since(begun))
	if want := (hooks + recovering) * rowsEach; v.Calls != want || v.Unknown > 0 {
		t.Errorf("%d calls with %d unknown outcomes, want %d calls and none", v.Calls, v.Unknown, want)
	}
	// Twenty hooks among eight: three each at most, and all of them owned.
	scenario.Until(t, patience, func() string { return fmt.Sprintf("fair shares; they are %v", y.owners(t)) }, func() bool {
		total, most := 0, 0
		for _, n := range y.owners(t) {
			total, most = total+n, max(most, n)
		}
		return total == hooks && most == 3
	})
}

// Two processes own half of the hooks each. Hooks move when one starts, stops,
// is killed and starts again, all under load; nothing is lost or doubled but
// what was in flight at the kill.
func TestHooksMoveBetweenProcessesUnderLoad(t *testing.T) {
	y := newYard(t)
	y.load.AddHooks(t, 6, scenario.Fast)
	y.load.AddHooks(t, 2, scenario.Slow)
	y.load.AddHooks(t, 2, scenario.Flapping)
	stop := y.load.Stream(t, 300*time.Millisecond, devstack.RetryForever)
	first := y.fleet.Launch(t, 1, "serve")[0]
	y.awaitShares(t, 10)
	second := y.fleet.Launch(t, 1, "serve")[0]
	y.awaitShares(t, 5, 5)
	// The record of an owner is written before the process counts the hook.
	for _, m := range []*scenario.Member{first, second} {
		scenario.Until(t, patience, m.Name()+" counts five owned hooks", func() bool {
			return strings.Contains(m.Process().Get(t, "/metrics", "").Body, `waybill_herald_hooks{state="owned"} 5`+"\n")
		})
	}
	if code := first.Stop(t); code != 0 {
		t.Errorf("the stop ended with %d", code)
	}
	y.awaitShares(t, 10)
	first.Restart(t)
	y.awaitShares(t, 5, 5)
	second.Kill()
	y.awaitShares(t, 10)
	second.Restart(t)
	y.awaitShares(t, 5, 5)
	stop()
	v := y.judge(t, 2*patience)
	// One call at a time for each of the five hooks that the killed one had.
	if v.Unknown > 5 || len(v.Repeats) > 5 {
		t.Errorf("%d unknown outcomes, %d repeats for one kill", v.Unknown, len(v.Repeats))
	}
	if n := len(y.callers()); n != 4 {
		t.Errorf("%d processes made calls, want all four: %v", n, y.callers())
	}
}

// Kinds of processes share the work in every mixture: the starters feed what
// the workers own, and only those own and send.
func TestStartersFeedAllWorkers(t *testing.T) {
	mixtures := map[string]struct {
		kinds map[string]int
		// senders is how many processes own hooks.
		senders int
	}{
		"two workers and two starters": {map[string]int{"worker": 2, "starter": 2}, 2},
		"a serve and a worker":         {map[string]int{"serve": 1, "worker": 1}, 2},
		"a serve and a starter":        {map[string]int{"serve": 1, "starter": 1}, 1},
	}
	for name, mixture := range mixtures {
		t.Run(name, func(t *testing.T) {
			const rowsEach, hooks, recovering = 10, 6, 1
			y := newYard(t)
			y.load.AddHooks(t, 3, scenario.Fast)
			y.load.AddHooks(t, 2, scenario.Slow)
			y.load.AddHooks(t, recovering, scenario.Recovering)
			for kind, n := range mixture.kinds {
				y.fleet.Launch(t, n, kind)
			}
			y.fleet.AwaitReady(t)
			shares := slices.Repeat([]int{hooks / mixture.senders}, mixture.senders)
			y.awaitShares(t, shares...)
			y.load.Queue(t, rowsEach, devstack.RetryForever)
			v := y.judge(t, 2*patience)
			if want := (hooks + recovering) * rowsEach; v.Calls != want || v.Unknown > 0 {
				t.Errorf("%d calls with %d unknown outcomes, want %d and none", v.Calls, v.Unknown, want)
			}
			if n := len(y.callers()); n != mixture.senders {
				t.Errorf("%d processes made calls, want %d: %v", n, mixture.senders, y.callers())
			}
		})
	}
}
