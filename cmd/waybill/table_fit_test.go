package main

import (
	"slices"
	"strings"
	"testing"

	"waybill/internal/columns"
)

const hookA, hookB = "PHID-HWBH-aaaaaaaaaaaaaaaaaaaa", "PHID-HWBH-bbbbbbbbbbbbbbbbbbbb"

// hooksOn is what `waybill hooks list` writes on a screen of that many columns:
// one hook with a long name, one in the state given.
func hooksOn(screen int, b hookView) (lines []string) {
	owner := "w1"
	last := &resultView{Result: "okay", At: at(990)}
	a := hookView{PHID: hookA, Name: strings.Repeat("日本語 🪝 ", 9), State: hookDelivering, Last: last, Owner: &owner, Oldest: at(900), now: 1000}
	b.PHID, b.Last, b.now = hookB, last, 1000
	text := hooksTable([]hookView{a, b}).text(screen)
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func pausedBy(by, reason string) hookView {
	return hookView{Name: "short", State: hookPaused, Pause: &pauseView{Kind: hookPaused, By: by, Reason: reason}}
}

// On no screen does a line wrap but that of a PHID which is wider, and on each the
// PHID and the whole state are there, with by whom and why.
func TestOnEveryScreenPHIDAndStateAreWhole(t *testing.T) {
	for screen := 20; screen <= 200; screen++ {
		lines := hooksOn(screen, pausedBy("ada", "certificate expired yesterday"))
		for _, line := range lines {
			if columns.Of(line) > screen && line != hookA && line != hookB {
				t.Errorf("%d columns, a line of %d: %q", screen, columns.Of(line), line)
			}
		}
		words := " " + strings.Join(strings.Fields(strings.Join(lines, " ")), " ") + " "
		for _, whole := range []string{hookA, hookB, "delivering", "paused by ada: certificate expired yesterday"} {
			if !strings.Contains(words, " "+whole+" ") {
				t.Errorf("%d columns lack %q:\n%s", screen, whole, strings.Join(lines, "\n"))
			}
		}
	}
}

// Columns go in their order, what has room stays, and a last line names those
// that went. A long name is cut before it costs others a column. With room for
// all, or where the room is not known, all is whole.
func TestANarrowScreenDoesWithoutTheLeastImportant(t *testing.T) {
	well, paused := hookView{Name: "short", State: hookDelivering}, pausedBy("ada", "certificate expired yesterday")
	const tellsAll = "`waybill hooks show PHID` tells all."
	for _, tt := range []struct {
		screen int
		b      hookView
		header string // as its first lines, until the first hook
		last   string // what is said to be missing; none is a long name uncut
	}{
		{0, paused, "HOOK NAME STATE QUEUED OLDEST IN FLIGHT LAST RESULT BREAKER OWNER", ""},
		{300, paused, "HOOK NAME STATE QUEUED OLDEST IN FLIGHT LAST RESULT BREAKER OWNER", ""},
		{150, well, "HOOK NAME STATE QUEUED OLDEST IN FLIGHT LAST RESULT BREAKER OWNER", tellsAll},
		{120, paused, "HOOK NAME STATE QUEUED OLDEST LAST RESULT", "Not shown: in flight, owner, breaker. " + tellsAll},
		{80, well, "HOOK NAME STATE QUEUED LAST RESULT", "Not shown: oldest, in flight, owner, breaker. " + tellsAll},
		{80, paused, "HOOK NAME QUEUED OLDEST LAST RESULT / STATE", "Not shown: in flight, owner, breaker. " + tellsAll},
		{60, well, "HOOK NAME STATE", "Not shown: queued, last result, oldest, in flight, owner, breaker. " + tellsAll},
		{55, well, "HOOK NAME QUEUED / STATE", "Not shown: last result, oldest, in flight, owner, breaker. " + tellsAll},
		{43, well, "HOOK STATE", "Not shown: name, queued, last result, oldest, in flight, owner, breaker. " + tellsAll},
		{40, well, "HOOK QUEUED / STATE", "Not shown: name, last result, oldest, in flight, owner, breaker. " + tellsAll},
		{20, well, "HOOK / STATE", "Not shown: name, queued, last result, oldest, in flight, owner, breaker. " + tellsAll},
	} {
		lines := hooksOn(tt.screen, tt.b)
		first := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, hookA) })
		header := strings.Join(strings.Fields(strings.Join(lines[:first], " / ")), " ")
		if header != tt.header {
			t.Errorf("%d columns: the header is %q, want %q", tt.screen, header, tt.header)
		}
		all := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
		if !strings.HasSuffix(all, tt.last) || tt.last == "" && strings.Contains(all, "tells all") {
			t.Errorf("%d columns, %q is to be said:\n%s", tt.screen, tt.last, strings.Join(lines, "\n"))
		}
		if cut := strings.Contains(all, "…"); cut != (tt.last != "" && strings.Contains(tt.header, "NAME")) {
			t.Errorf("%d columns, cut is %v:\n%s", tt.screen, cut, strings.Join(lines, "\n"))
		}
	}
}

// Where the columns of a list are named, none is named wrongly: a name that is in
// no header would be looked for in vain.
func TestSpareColumnsAreColumns(t *testing.T) {
	for what, table := range map[string]*table{"hooks": hooksTable(nil), "requests": requestsTable(nil), "runs": (workflowView{}).table()} {
		for _, name := range table.spare {
			if table.column(name) < 1 {
				t.Errorf("%s: %q is no column, or the first", what, name)
			}
		}
		for name, least := range table.least {
			if !slices.Contains(table.spare, name) || least < columns.Of(name) {
				t.Errorf("%s: %q is cut to %d, and is not spare or shorter than its header", what, name, least)
			}
		}
		if table.all == "" {
			t.Errorf("%s: nothing tells all", what)
		}
	}
}
