package faults

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"waybill/internal/devstack/stacktest"
	"waybill/internal/planted"
	"waybill/test/scenario"
)

var (
	bugs  = flag.String("bugs", string(planted.Replay), "the planted bugs to look for, by name; or all")
	tries = flag.Int("tries", 4, "under how many seeds each is looked for at most")
)

// finding is how a bug is found: the moves that it needs, the beginnings of what
// the judge says then, and how many taskmasters of Phorge's there are.
type finding struct {
	moves, rules []string
	phorges      int
}

func findings() map[planted.Bug]finding {
	return map[planted.Bug]finding{
		planted.NoFence:          {moves: []string{"row failed by Phorge"}, rules: []string{"overwritten:", "fence:"}},
		planted.NoLeaseCheck:     {moves: []string{"Temporal unheard"}, rules: []string{"late:"}},
		planted.SecondSelect:     {moves: []string{"claim overtaken"}, rules: []string{"fence:"}},
		planted.ReportFirst:      {moves: []string{"Temporal wiped", "Temporal unheard"}, rules: []string{"unexplained:", "double:"}},
		planted.RetryOutsideSlot: {moves: []string{"database connections cut"}, rules: []string{"overlap:"}},
		planted.EarlyRelease:     {moves: []string{"SIGTERM"}, rules: []string{"overlap:", "double:"}, phorges: 6},
		planted.Replay:           {moves: []string{"Temporal connections cut"}, rules: []string{"claim:"}},
	}
}

// The campaign has teeth: each planted bug is found within a few seeds, by a rule
// that it breaks, where the moves are made that it takes.
func TestEachPlantedBugIsFound(t *testing.T) {
	stacktest.NeedsServers(t)
	wanted := strings.Split(*bugs, ",")
	if *bugs == "all" {
		wanted = nil
		for _, bug := range planted.All() {
			wanted = append(wanted, string(bug))
		}
	}
	on := startServers(t)
	for _, bug := range wanted {
		if !slices.Contains(planted.All(), planted.Bug(bug)) {
			t.Fatalf("no bug is called %q; there are %q", bug, planted.All())
		}
		t.Run(bug, func(t *testing.T) { find(t, on, planted.Bug(bug)) })
	}
}

func find(t *testing.T, on scenario.Servers, bug planted.Bug) {
	program, how := scenario.Binary{Tags: bug.Tag()}, findings()[bug]
	for seed := range uint64(*tries) {
		found := false
		t.Run("", func(t *testing.T) {
			of := worldOf{on: on, seed: seed, program: &program, only: how.moves}
			w := newWorld(t, of)
			w.play(of.chance(), how.phorges)
			// A bug may leave rows or workflows behind; what was written until then is judged.
			scenario.Within(t, settleWithin, func() bool {
				return w.load.Outstanding(t)+w.witness.UnderWay() == 0 && len(w.OpenRequests(t)) == 0
			})
			v := w.evidence().Judge()
			for _, wrong := range v.Wrong {
				by := func(rule string) bool { return strings.HasPrefix(wrong, rule) }
				if slices.ContainsFunc(how.rules, by) {
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
	t.Errorf("%s is not found within %d seeds", bug, *tries)
}
