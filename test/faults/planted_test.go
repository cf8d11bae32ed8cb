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

// findings are the bugs and what they are found by: the beginnings of what the
// judge says.
func findings() map[planted.Bug][]string {
	return map[planted.Bug][]string{
		planted.NoFence:          {"overwritten:", "fence:", "double:"},
		planted.NoLeaseCheck:     {"late:"},
		planted.SecondSelect:     {"fence:"},
		planted.ReportFirst:      {"unexplained:", "double:"},
		planted.RetryOutsideSlot: {"overlap:"},
		planted.EarlyRelease:     {"overlap:"},
		planted.Replay:           {"claim:"},
	}
}

// The campaign has teeth: each planted bug is found within a few seeds, by a rule
// that it breaks.
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
			w.conductor.Moves = w.moves()
			w.play(chance)
			scenario.Within(t, settleWithin, func() bool { return w.load.Outstanding(t)+w.witness.UnderWay() == 0 })
			v := w.evidence().Judge()
			for _, wrong := range v.Wrong {
				by := func(rule string) bool { return strings.HasPrefix(wrong, rule) }
				if slices.ContainsFunc(findings()[bug], by) {
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
