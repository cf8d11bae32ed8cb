package workflows_test

import (
	"slices"
	"strings"
	"testing"

	"waybill/workflows"
)

// A release and a pause replace each other, the first of two equal ones stands,
// and one resume ends both; page, query and search attribute say which it is.
func TestPauseAndReleaseOfAHookReplaceEachOther(t *testing.T) {
	p := newTable(t)
	seen := p.watched()
	stands := func(second int, by string, paused, released bool, shown string) {
		p.at(second, func() {
			s := p.state()
			if s.Paused != paused || s.Released != released || (s.Pause != nil) != (by != "") || (s.Pause != nil && s.Pause.By != by) {
				t.Errorf("after %d s: state %+v", second, s)
			}
			if (p.pause != nil) != (by != "") || (p.pause != nil && (p.pause.By != by || p.pause.Released != released)) {
				t.Errorf("after %d s: table %+v", second, p.pause)
			}
			if got := p.details(); !strings.Contains(got, shown) {
				t.Errorf("after %d s: page %q", second, got)
			}
		})
	}
	by := func(name string) map[string]string { return map[string]string{"by": name} }
	p.signal(1, workflows.SignalRelease, by("ada"))
	stands(2, "ada", false, true, "**Released** to Phorge by ada")
	p.signal(3, workflows.SignalRelease, by("again"))
	stands(4, "ada", false, true, "Released")
	p.signal(5, workflows.SignalPause, by("bob"))
	stands(6, "bob", true, false, "**Paused** by bob")
	p.signal(7, workflows.SignalRelease, by("eve"))
	stands(8, "eve", false, true, "Signal `resume` to take the hook back")
	p.signal(9, workflows.SignalResume, nil)
	stands(10, "", false, false, "**Running.**")
	if err := p.play(workflows.HookInput{Attributes: true}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"running", "released", "paused", "released", "running"}; !slices.Equal(seen.states, want) {
		t.Errorf("shown %q, want %q", seen.states, want)
	}
}

// Where the order of signals is lost the hook ends with nobody delivering.
func TestAReleaseAndAPauseThatWaitedEndPaused(t *testing.T) {
	p := newTable(t)
	p.at(1, func() { p.away = 5 })
	p.signal(1, workflows.SignalResume, nil)
	p.signal(1, workflows.SignalPause, "halt")
	p.signal(1, workflows.SignalRelease, "go")
	if err := p.play(workflows.HookInput{}); err != nil {
		t.Fatal(err)
	}
	if p.pause == nil || p.pause.Released || p.pause.Reason != "halt" {
		t.Errorf("table %+v after %q", p.pause, p.calls)
	}
}
