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
	// spare are the headers of columns that a narrow screen does without, the most
	// important first, one at least. The others are always shown, and never cut.
	spare []string
	// least is how far a spare column may be cut to fit the screen; those that are
	// not here are shown whole or not at all.
	least map[string]int
	// all is the command or flag that shows a row in full.
	all string
}

// screen is how many columns the terminal has in which a writer ends, 0 where it
// ends in none or that does not say.
func screen(w io.Writer) int {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// add appends a row. An empty cell becomes a dash, so that a row always has as
// many words as columns at least.
func (t *table) add(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		if row[i] = columns.Plain(c); row[i] == "" {
			row[i] = "-"
		}
	}
	t.rows = append(t.rows, row)
}

// write puts the table out in one piece.
func (t *table) write(w io.Writer) error {
	_, err := io.WriteString(w, t.text(screen(w)))
	return err
}

// text is the table on a screen of that many columns, 0 for any number. Where
// something is cut or left out, a last line says so.
func (t *table) text(screen int) string {
	f := t.fit(screen)
	var b strings.Builder
	for _, row := range append([][]string{t.header}, t.rows...) {
		b.WriteString(f.beside(row) + f.under(row, screen))
	}
	said := t.all + " tells all."
	switch {
	case len(f.left) > 0:
		said = "Not shown: " + strings.ToLower(strings.Join(f.left, ", ")) + ". " + said
	case !f.cut:
		return b.String()
	}
	return b.String() + columns.Fold(said, screen, 0) + "\n"
}

// writeJSON writes one value with names as they are documented in
// docs/commands.md, readable as it is.
func writeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
