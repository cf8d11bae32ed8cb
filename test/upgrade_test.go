package acceptance

import (
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// earlier is the version that is upgraded from: that before the owners' waits
// were written down, so that its tables differ too.
const earlier = "d3b9940644bb535de072b9ae580fcfe657ec7f88"

// Three processes of an earlier version are restarted one by one as this one,
// under load, and one of them as the earlier version again, as after an upgrade
// that somebody regrets. Nothing is lost and nothing is sent twice; what failed
// under one version and slept is delivered by the other.
func TestARollingUpgradeLosesNothing(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.load.AddHooks(t, 3, scenario.Fast)
	y.load.AddHooks(t, 3, scenario.Slow)
	y.load.AddHooks(t, 4, scenario.Recovering)
	old := scenario.BuildEarlier(t, earlier)
	y.fleet.Program = old
	members := y.fleet.Launch(t, 3, "serve")
	y.fleet.AwaitReady(t)
	stop := y.load.Stream(t, 500*time.Millisecond, devstack.RetryForever)
	version := map[int]string{} // programs by process
	for _, m := range members {
		version[m.Process().PID()] = old
	}
	// restart replaces one process, while the others have calls under way.
	restart := func(m *scenario.Member, program string) {
		y.awaitMoreCalls(t, 60)
		if code := m.Stop(t); code != 0 {
			t.Errorf("%s ended with %d", m.Name(), code)
		}
		y.fleet.Program = program
		m.Restart(t)
		m.Process().AwaitReady(t)
		version[m.Process().PID()] = program
	}
	for _, m := range members {
		restart(m, "")
	}
	restart(members[0], old)
	scenario.Until(t, 2*patience, "rows have slept over a change of version in each direction", func() bool {
		forth, back := y.passedOver(version, old)
		return forth > 0 && back > 0
	})
	stop()
	v := y.judge(t, 4*patience)
	if v.Unknown > 0 || len(v.Repeats) > 0 {
		t.Errorf("%d outcomes are unknown and %d repeated after orderly stops", v.Unknown, len(v.Repeats))
	}
	forth, back := y.passedOver(version, old)
	t.Logf("%d rows passed from the earlier version to this one, %d back", forth, back)
}

// awaitMoreCalls lets the load go on.
func (y yard) awaitMoreCalls(t *testing.T, n int) {
	t.Helper()
	before := len(y.witness.Calls())
	scenario.Until(t, 2*patience, "calls go on", func() bool { return len(y.witness.Calls()) >= before+n })
}

// passedOver counts rows that one version tried first and the other after it.
func (y yard) passedOver(version map[int]string, old string) (forth, back int) {
	first := map[string]string{}
	for _, c := range y.witness.Calls() {
		now, known := version[c.PID]
		before, tried := first[c.Row]
		switch {
		case !known:
		case !tried:
			first[c.Row] = now
		case before == old && now != old:
			forth++
		case before != old && now == old:
			back++
		}
	}
	return forth, back
}
