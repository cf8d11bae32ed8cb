package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"golang.org/x/term"

	"waybill/internal/columns"
)

// table is rows of cells for people: a header, columns two spaces apart, and
// widths as a terminal shows them.
type table struct {
	header []string
	rows   [][]string
	// brief cuts texts of somebody else's where a terminal does not say how wide it
	// is. Into a pipe or a file they go whole.
	brief bool
	// screen is how many columns there are, 0 for any number.
	screen int
	// spare are the headers of columns that a narrow screen does without, the
	// least important first, so that no text is cut below comfortable. Dear ones
	// go where it would else be cut below readable.
	spare, dear []string
	// soft is the header of the column that is cut before any other.
	soft string
}

// newTable is a table for a writer.
func newTable(w io.Writer, header ...string) *table {
	t := &table{header: header}
	is, wide := screen(w)
	t.brief, t.screen = is && wide == 0, wide
	return t
}

// screen says whether a writer ends in a terminal, and how many columns that
// has, 0 where it does not say.
func screen(w io.Writer) (is bool, columns int) {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false, 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return true, 0
	}
	return true, columns
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

// write puts the table out in one piece. What a screen has no room for is left
// out or cut, and a last line names the columns that are not there.
func (t *table) write(w io.Writer) error {
	widths, left := t.fit()
	var b strings.Builder
	for _, row := range append([][]string{t.header}, t.rows...) {
		var line strings.Builder
		for i, c := range row {
			if widths[i] > 0 {
				c = columns.Cut(c, widths[i])
				line.WriteString(c + strings.Repeat(" ", widths[i]-columns.Of(c)+gap))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	if len(left) > 0 {
		b.WriteString("Not shown: " + columns.Fold(strings.ToLower(strings.Join(left, ", "))+" (see --json)", t.screen, len("Not shown: ")) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// gap is the space between two columns.
const gap = 2

// To how many columns a text is cut: the first while a spare column can go
// instead, the second while a dear one can. A word is kept on any screen, and what
// has no room then wraps. The soft column is cut to a word before any other is cut.
const (
	comfortable = 40
	readable    = 24
	word        = 10
)

// fit chooses the widths at which the table has room on its screen, 0 for a
// column that is left out. The first column is never cut: it is what other
// commands are told.
func (t *table) fit() (widths []int, left []string) {
	widths = make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], columns.Of(c))
		}
	}
	if t.screen == 0 {
		return widths, nil
	}
	leave := func(headers []string, least int) {
		for _, h := range headers {
			if whole(t.cut(widths, least)) <= t.screen {
				return
			}
			widths[slices.Index(t.header, h)] = 0
			left = append(left, h)
		}
	}
	leave(t.spare, comfortable)
	leave(t.dear, readable)
	return t.cut(widths, word), left
}

// cut narrows the soft column, and then the widest but the first, until all have
// room or none is wider than the least.
func (t *table) cut(widths []int, least int) []int {
	widths = slices.Clone(widths)
	if soft := slices.Index(t.header, t.soft); soft > 0 {
		over := max(whole(widths)-t.screen, 0)
		widths[soft] = max(widths[soft]-over, min(widths[soft], word))
	}
	for whole(widths) > t.screen {
		widest := slices.Max(widths[1:])
		if widest <= least {
			break
		}
		widths[1+slices.Index(widths[1:], widest)]--
	}
	return widths
}

// whole is how many columns of a screen a table takes.
func whole(widths []int) (n int) {
	for _, w := range widths {
		if w > 0 {
			n += w + gap
		}
	}
	return n - gap
}

// shown is the longest text of somebody else's in a column on a screen of unknown
// width: what 40 letters take.
const shown = 40

// writeJSON writes one value with names as they are documented in
// docs/commands.md, readable as it is.
func writeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// paragraph is what a command says about one thing: a name and a value, which on a
// terminal goes on below itself.
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
	_, wide := screen(w)
	var b strings.Builder
	for _, l := range p.lines {
		b.WriteString(l[0] + strings.Repeat(" ", widest-columns.Of(l[0])+gap) + columns.Fold(l[1], wide, widest+gap) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
