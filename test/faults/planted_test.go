package faults

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"waybill/internal/devstack/stacktest"
	"waybill/internal/planted"
	"waybill/test/scenario"
)

var plantedSeeds = flag.Int("planted", 0, "look for each planted bug, under so many seeds at most")

// finding is how a bug is found: the moves that it needs, and the beginnings of
// what the judge says then.
type finding struct{ moves, rules []string }

func findings() map[planted.Bug]finding {
	return map[planted.Bug]finding{
		planted.NoFence:          {[]string{"row failed by Phorge", "SIGKILL"}, []string{"overwritten:", "fence:", "double:"}},
		planted.NoLeaseCheck:     {[]string{"Temporal unheard"}, []string{"late:"}},
		planted.SecondSelect:     {[]string{"claim overtaken"}, []string{"fence:"}},
		planted.ReportFirst:      {[]string{"Temporal wiped", "Temporal unheard"}, []string{"unexplained:", "double:"}},
		planted.RetryOutsideSlot: {[]string{"database connections cut"}, []string{"overlap:"}},
		planted.EarlyRelease:     {[]string{"SIGTERM"}, []string{"overlap:"}},
		planted.Replay:           {[]string{"Temporal connections cut"}, []string{"claim:"}},
	}
}

// The campaign has teeth: each planted bug is found within a few seeds, by a rule
// that it breaks, where the moves are made that it takes.
func TestEachPlantedBugIsFound(t *testing.T) {
	stacktest.NeedsServers(t)
	if *plantedSeeds == 0 {
		t.Skip("builds and runs seven programs: make faults does")
	}
	on := startServers(t)
	for _, bug := range planted.All() {
		t.Run(string(bug), func(t *testing.T) { find(t, on, bug) })
	}
}

func find(t *testing.T, on scenario.Servers, bug planted.Bug) {
	program := scenario.Binary{Tags: bug.Tag()}
	for seed := range uint64(*plantedSeeds) {
		found := false
		t.Run("", func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // as in run
			w := newWorld(t, worldOf{on, &program, seed})
			w.conductor.Moves = slices.DeleteFunc(w.moves(), func(m scenario.Move) bool { return !slices.Contains(findings()[bug].moves, m.Kind) })
			w.play(chance)
			scenario.Within(t, settleWithin, func() bool { return w.load.Outstanding(t)+w.witness.UnderWay() == 0 })
			v := w.evidence().Judge()
			for _, wrong := range v.Wrong {
				by := func(rule string) bool { return strings.HasPrefix(wrong, rule) }
				if slices.ContainsFunc(findings()[bug].rules, by) {
					t.Logf("%s, found under seed %d (%s) by %q, and %d more", bug, seed, w.conductor.Played(), wrong, len(v.Wrong)-1)
					found = true
					return
				}
			}
			t.Logf("%s, not found under seed %d (%s): %q", bug, seed, w.conductor.Played(), v.Wrong)
		})
		if found {
			return
		}
	}
	t.Errorf("%s is not found within %d seeds", bug, *plantedSeeds)
}
