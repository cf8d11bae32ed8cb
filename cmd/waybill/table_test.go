package main

import (
	"bytes"
	"strings"
	"testing"

	"waybill/internal/columns"
)

// Columns stand under each other whatever the cells are made of, no line ends in
// spaces, and an empty cell does not make a row shorter.
func TestTablesAreAligned(t *testing.T) {
	table := &table{header: []string{"HOOK", "NAME", "OWNER"}}
	table.add("a", "日本 🪝", "x")
	table.add("bbb", "", "y")
	table.add("c", "e\u0301", "")
	table.add("d", strings.Repeat("long ", 20), "z")
	var out bytes.Buffer
	if err := table.write(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i, want := range []string{"OWNER", "x", "y", "-", "z"} {
		cell := strings.LastIndex(lines[i], want)
		if cell < 0 || columns.Of(lines[i][:cell]) != columns.Of(lines[0][:strings.Index(lines[0], "OWNER")]) {
			t.Errorf("line %q is not aligned", lines[i])
		}
		if strings.HasSuffix(lines[i], " ") {
			t.Errorf("line %q ends in spaces", lines[i])
		}
	}
	if !strings.Contains(out.String(), strings.Repeat("long ", 20)) {
		t.Error("a text is cut although nobody looks at a screen")
	}
}

// wide is a table that no narrow screen has room for.
func wide(screen int) *table {
	t := &table{header: []string{"HOOK", "NAME", "STATE", "QUEUED", "OWNER", "BREAKER"}, screen: screen,
		spare: []string{"BREAKER", "OWNER"}, dear: []string{"QUEUED", "NAME"}, soft: "NAME"}
	t.add("PHID-HWBH-aaaaaaaaaaaaaaaaaaaa", "日本語の名前 🪝", "paused by ada: certificate expired yesterday", "12", "w1", "closed")
	t.add("PHID-HWBH-bbbbbbbbbbbbbbbbbbbb", strings.Repeat("long ", 12), "delivering", "0", "nobody", "open until 2026-12-01T07:30:00Z")
	return t
}

func written(t *testing.T, table *table) (lines []string) {
	t.Helper()
	var out bytes.Buffer
	if err := table.write(&out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// On no screen does a line of a table wrap, and the first column, which other
// commands are told, is whole on each.
func TestTablesFitTheScreen(t *testing.T) {
	for screen := 42; screen <= 200; screen++ {
		lines := written(t, wide(screen))
		for i, line := range lines {
			if columns.Of(line) > screen {
				t.Errorf("on %d columns, line %d takes %d: %q", screen, i, columns.Of(line), line)
			}
		}
		if screen >= 80 && (!strings.Contains(lines[1], "paused by ada: certific") || !strings.Contains(lines[2], "delivering")) {
			t.Errorf("on %d columns, who paused the hook and why cannot be read: %q", screen, lines)
		}
		if !strings.HasPrefix(lines[1], "PHID-HWBH-aaaaaaaaaaaaaaaaaaaa ") || !strings.HasPrefix(lines[2], "PHID-HWBH-bbbbbbbbbbbbbbbbbbbb ") {
			t.Errorf("on %d columns, the hooks cannot be read: %q", screen, lines)
		}
	}
}

// What is spared goes first, in its order, and is named; the last of it only where
// cutting is not enough. With room for all, or where the room is not known, nothing is.
func TestANarrowScreenDoesWithoutTheLeastImportant(t *testing.T) {
	for screen, want := range map[int]struct {
		header string
		last   string // what is said to be missing
		cut    bool
	}{
		0:   {"HOOK NAME STATE QUEUED OWNER BREAKER", "", false},
		200: {"HOOK NAME STATE QUEUED OWNER BREAKER", "", false},
		165: {"HOOK NAME STATE QUEUED OWNER BREAKER", "", true},
		120: {"HOOK NAME STATE QUEUED OWNER", "breaker", true},
		100: {"HOOK NAME STATE QUEUED OWNER", "breaker", true},
		99:  {"HOOK NAME STATE QUEUED", "breaker, owner", true},
		80:  {"HOOK NAME STATE QUEUED", "breaker, owner", true},
		72:  {"HOOK NAME STATE", "breaker, owner, queued", true},
		60:  {"HOOK STATE", "breaker, owner, queued, name", true},
		20:  {"HOOK STATE", "breaker, owner, queued, name", true},
	} {
		lines := written(t, wide(screen))
		if got := strings.Join(strings.Fields(lines[0]), " "); got != want.header {
			t.Errorf("on %d columns the header is %q, want %q", screen, got, want.header)
		}
		said := ""
		if len(lines) > 3 {
			footer := strings.Join(strings.Fields(strings.Join(lines[3:], " ")), " ")
			_, said, _ = strings.Cut(strings.TrimSuffix(footer, " (see --json)"), "Not shown: ")
		}
		if said != want.last {
			t.Errorf("on %d columns %q is said to be missing, want %q", screen, said, want.last)
		}
		if cut := strings.Contains(strings.Join(lines, ""), "…"); cut != want.cut {
			t.Errorf("on %d columns, cut is %v: %q", screen, cut, lines)
		}
	}
}

// On a screen that is too narrow for anything a line wraps, but what it says can be
// read.
func TestNoScreenIsTooNarrowForAState(t *testing.T) {
	for screen := 1; screen < 42; screen++ {
		lines := written(t, wide(screen))
		if !strings.Contains(lines[1], " paused by") || !strings.HasSuffix(lines[2], " delivering") {
			t.Errorf("on %d columns: %q", screen, lines[:3])
		}
	}
}
