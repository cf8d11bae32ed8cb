package main

import (
	"strings"
	"testing"

	"waybill/internal/columns"
)

// Columns stand under each other whatever the cells are made of, no line ends in
// spaces, and an empty cell does not make a row shorter.
func TestTablesAreAligned(t *testing.T) {
	table := &table{header: []string{"HOOK", "NAME", "OWNER"}, spare: []string{"OWNER"}}
	table.add("a", "日本 🪝 👩\u200d💻", "x")
	table.add("bbb", "", "y")
	table.add("c", "e\u0301", "")
	table.add("d", strings.Repeat("long ", 20), "z")
	out := table.text(0)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for i, want := range []string{"OWNER", "x", "y", "-", "z"} {
		cell := strings.LastIndex(lines[i], want)
		if cell < 0 || columns.Of(lines[i][:cell]) != columns.Of(lines[0][:strings.Index(lines[0], "OWNER")]) {
			t.Errorf("line %q is not aligned", lines[i])
		}
		if strings.HasSuffix(lines[i], " ") {
			t.Errorf("line %q ends in spaces", lines[i])
		}
	}
	if !strings.Contains(out, strings.Repeat("long ", 20)) {
		t.Error("a text is cut although nobody looks at a screen")
	}
}
