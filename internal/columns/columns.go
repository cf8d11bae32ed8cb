// Package columns measures and cuts texts as a terminal shows them, and takes
// out of them what a terminal would obey. It is pure.
package columns

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Plain makes a text of somebody else's fit for a terminal: no control
// characters, no line's end, and nothing that turns the direction of writing.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// Of is how many columns a terminal needs for a plain text.
func Of(text string) (n int) {
	for _, r := range text {
		n += ofRune(r)
	}
	return n
}

// ellipsis stands for what was cut; it takes one column.
const ellipsis = "…"

// Cut brings a plain text to at most that many columns, the ellipsis at its end
// included.
func Cut(text string, columns int) string {
	if Of(text) <= columns {
		return text
	}
	if columns < 1 {
		return ""
	}
	used := 0
	for i, r := range text {
		if used += ofRune(r); used > columns-1 {
			return text[:i] + ellipsis
		}
	}
	return text
}

// Fold breaks a plain text between words, so that it fits a screen of that many
// columns when it begins in column indent, as its further lines do behind spaces. A
// word that is longer has a line of its own. On a screen of 0 columns there is room
// for everything.
func Fold(text string, screen, indent int) string {
	if screen <= 0 {
		return text
	}
	var b strings.Builder
	used := indent
	for i, word := range strings.Split(text, " ") {
		wide := Of(word)
		switch {
		case i == 0:
		case used+1+wide > screen:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = indent
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += wide
	}
	return b.String()
}

// ofRune counts wide characters (Chinese, emoji) as two and combining ones,
// which share the column before them, as none.
func ofRune(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}
