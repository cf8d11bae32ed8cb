package main

import (
	"strings"
	"testing"
)

// What is said about one thing is wrapped under its name, or below it where a
// PHID would have no room beside; into a pipe each value is one line.
func TestValuesAreWrappedUnderTheirNames(t *testing.T) {
	p := &paragraph{}
	p.line("Hook", "PHID-HWBH-aaaaaaaaaaaaaaaaaaaa")
	p.line("Empty", "")
	p.line("Next up", "It waits until the hook is resumed: paused by ada")
	for screen, want := range map[int]string{
		0: "Hook     PHID-HWBH-aaaaaaaaaaaaaaaaaaaa\n" +
			"Next up  It waits until the hook is resumed: paused by ada\n",
		58: "Hook     PHID-HWBH-aaaaaaaaaaaaaaaaaaaa\n" +
			"Next up  It waits until the hook is resumed: paused by ada\n",
		57: "Hook     PHID-HWBH-aaaaaaaaaaaaaaaaaaaa\n" +
			"Next up  It waits until the hook is resumed: paused by\n" +
			"         ada\n",
		48: "Hook     PHID-HWBH-aaaaaaaaaaaaaaaaaaaa\n" +
			"Next up  It waits until the hook is resumed:\n" +
			"         paused by ada\n",
		47: "Hook\n  PHID-HWBH-aaaaaaaaaaaaaaaaaaaa\n" +
			"Next up\n  It waits until the hook is resumed: paused by\n  ada\n",
		20: "Hook\n  PHID-HWBH-aaaaaaaaaaaaaaaaaaaa\n" +
			"Next up\n  It waits until the\n  hook is resumed:\n  paused by ada\n",
	} {
		if got := p.text(screen); got != want {
			t.Errorf("on %d columns\n%swant\n%s", screen, got, strings.ReplaceAll(want, " ", "·"))
		}
	}
}
