package main

import (
	"slices"
	"strings"

	"waybill/internal/columns"
)

// fit is how a table stands on its screen.
type fit struct {
	widths []int    // of the columns that stand side by side, 0 for the others
	below  []int    // columns that have a line of their own under these
	left   []string // headers of those that are not shown
	cut    bool     // a cell is not whole
}

// gap is the space between two columns.
const gap = 2

// fit measures the columns and chooses what the screen has room for.
func (t *table) fit(screen int) fit {
	whole := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, c := range row {
			whole[i] = max(whole[i], columns.Of(c))
		}
	}
	if screen == 0 {
		return fit{widths: whole}
	}
	return t.squeeze(whole, screen)
}

// squeeze keeps what is always shown, gives each spare column that has room its
// least, in their order, and shares out what is left among those that are cut.
func (t *table) squeeze(whole []int, screen int) fit {
	f := fit{widths: slices.Clone(whole)}
	for _, name := range t.spare {
		f.widths[t.column(name)] = 0
	}
	if first := gap + t.needs(t.spare[0], whole); f.taken() > screen || f.taken()+first > screen && whole[0]+first <= screen {
		f.lower()
	}
	for _, name := range t.spare {
		if needs := t.needs(name, whole); f.taken()+gap+needs <= screen {
			f.widths[t.column(name)] = needs
		} else {
			f.left = append(f.left, name)
		}
	}
	f.grow(whole, screen)
	return f
}

// grow shares out what is left of the screen, a column at a time.
func (f *fit) grow(whole []int, screen int) {
	for grown := true; grown; {
		grown, f.cut = false, false
		for i, width := range f.widths {
			short := 0 < width && width < whole[i]
			f.cut = f.cut || short
			if short && f.taken() < screen {
				f.widths[i]++
				grown = true
			}
		}
	}
}

func (t *table) column(name string) int { return slices.Index(t.header, name) }

// needs is the room without which a spare column is not shown.
func (t *table) needs(name string, whole []int) int {
	n := whole[t.column(name)]
	if least, ok := t.least[name]; ok {
		return min(n, least)
	}
	return n
}

// lower puts what is always shown under the first column, which other commands
// are told: where it has no room beside that, or leaves none for anything else.
func (f *fit) lower() {
	for i := 1; i < len(f.widths); i++ {
		if f.widths[i] > 0 {
			f.below, f.widths[i] = append(f.below, i), 0
		}
	}
}

// taken is how many columns of a screen stand side by side.
func (f *fit) taken() (n int) {
	for _, w := range f.widths {
		if w > 0 {
			n += w + gap
		}
	}
	return n - gap
}

// beside is the line of a row.
func (f *fit) beside(row []string) string {
	var line strings.Builder
	for i, c := range row {
		if width := f.widths[i]; width > 0 {
			c = columns.Cut(c, width)
			line.WriteString(c + strings.Repeat(" ", width-columns.Of(c)+gap))
		}
	}
	return strings.TrimRight(line.String(), " ") + "\n"
}

// under are the lines below that one, whole.
func (f *fit) under(row []string, screen int) string {
	var lines strings.Builder
	for _, i := range f.below {
		lines.WriteString(strings.Repeat(" ", gap) + columns.Fold(row[i], screen, gap) + "\n")
	}
	return lines.String()
}
