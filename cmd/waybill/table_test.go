package main

import (
	"bytes"
	"strings"
	"testing"
)

// What a database holds must not reach a terminal as commands to it.
func TestTextsInTablesArePlain(t *testing.T) {
	for in, want := range map[string]string{
		"certificate expired":   "certificate expired",
		"Größe 日本":              "Größe 日本",
		"evil\x1b[2J\nx\ry\x00": "evil?[2J?x?y?",
		"\u202ereversed":        "?reversed",
		"bad utf-8 \xff":        "bad utf-8 \ufffd",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}

// On a screen a text takes at most a column's room, counted as a terminal does.
func TestTextsOnAScreenAreCutToTheirColumn(t *testing.T) {
	for in, want := range map[string]string{
		strings.Repeat("n", 40):       strings.Repeat("n", 40),
		strings.Repeat("n", 41):       strings.Repeat("n", 39) + "…",
		strings.Repeat("日", 20):       strings.Repeat("日", 20),
		strings.Repeat("日", 21):       strings.Repeat("日", 19) + "…",
		strings.Repeat("e\u0301", 40): strings.Repeat("e\u0301", 40),
	} {
		got := brief(in)
		if got != want || columns(got) > shown {
			t.Errorf("brief(%q) = %q, %d columns", in, got, columns(got))
		}
	}
}

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
		if cell < 0 || columns(lines[i][:cell]) != columns(lines[0][:strings.Index(lines[0], "OWNER")]) {
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
