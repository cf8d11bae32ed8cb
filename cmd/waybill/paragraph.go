package main

import (
	"io"
	"strings"

	"waybill/internal/columns"
)

// paragraph is what a command says about one thing: a name and a value a line.
type paragraph struct{ lines [][2]string }

// line adds a value; an empty one is not said.
func (p *paragraph) line(name, value string) {
	if value != "" {
		p.lines = append(p.lines, [2]string{name, columns.Plain(value)})
	}
}

// valueAtLeast is the room for values beside their names, which the longest word
// of ours fills: the id of a request's workflow and a comma. With less they stand
// under them.
const valueAtLeast = 39

// write puts it out in one piece.
func (p *paragraph) write(w io.Writer) error {
	_, err := io.WriteString(w, p.text(screen(w)))
	return err
}

// text has the values in one column, wrapped to the screen, 0 for any width.
func (p *paragraph) text(screen int) string {
	widest := 0
	for _, l := range p.lines {
		widest = max(widest, columns.Of(l[0]))
	}
	indent := widest + gap
	under := 0 < screen && screen < indent+valueAtLeast
	if under {
		indent = gap
	}
	var b strings.Builder
	for _, l := range p.lines {
		if b.WriteString(l[0]); under {
			b.WriteString("\n" + strings.Repeat(" ", indent))
		} else {
			b.WriteString(strings.Repeat(" ", indent-columns.Of(l[0])))
		}
		b.WriteString(columns.Fold(l[1], screen, indent) + "\n")
	}
	return b.String()
}
