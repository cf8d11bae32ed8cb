package main

import (
	"encoding/json"
	"io"
	"strings"

	"golang.org/x/term"

	"waybill/internal/columns"
)

// table is rows of cells for people: a header, columns two spaces apart, and
// widths as a terminal shows them.
type table struct {
	header []string
	rows   [][]string
	// brief cuts texts of somebody else's to what a screen has room for. Into a
	// pipe or a file they go whole.
	brief bool
}

// newTable is a table for a writer.
func newTable(w io.Writer, header ...string) *table {
	return &table{header: header, brief: onScreen(w)}
}

// onScreen says whether a writer ends in a terminal.
func onScreen(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// add appends a row. An empty cell becomes a dash, so that a row always has as
// many words as columns at least.
func (t *table) add(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		if row[i] = columns.Plain(c); t.brief {
			row[i] = columns.Cut(row[i], shown)
		}
		if row[i] == "" {
			row[i] = "-"
		}
	}
	t.rows = append(t.rows, row)
}

// write puts the table out in one piece.
func (t *table) write(w io.Writer) error {
	widths := make([]int, len(t.header))
	all := append([][]string{t.header}, t.rows...)
	for _, row := range all {
		for i, c := range row {
			widths[i] = max(widths[i], columns.Of(c))
		}
	}
	var b strings.Builder
	for _, row := range all {
		var line strings.Builder
		for i, c := range row {
			line.WriteString(c + strings.Repeat(" ", widths[i]-columns.Of(c)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shown is the longest text of somebody else's in a column on a screen: what 40
// letters take.
const shown = 40

// writeJSON writes one value with names as they are documented in
// docs/commands.md, readable as it is.
func writeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// paragraph is what a command says about one thing: a name and a value a line.
type paragraph struct{ lines [][2]string }

// line adds a value; an empty one is not said.
func (p *paragraph) line(name, value string) {
	if value != "" {
		p.lines = append(p.lines, [2]string{name, columns.Plain(value)})
	}
}

// write puts it out with the values in one column.
func (p *paragraph) write(w io.Writer) error {
	widest := 0
	for _, l := range p.lines {
		widest = max(widest, columns.Of(l[0]))
	}
	var b strings.Builder
	for _, l := range p.lines {
		b.WriteString(l[0] + strings.Repeat(" ", widest-columns.Of(l[0])+2) + l[1] + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
