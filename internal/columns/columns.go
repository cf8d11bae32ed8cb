// Package columns measures, cuts and folds texts as a terminal shows them, and
// takes out of them what a terminal would obey. It is pure.
package columns

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// joiners make one sign of several, in emoji and in scripts such as Sinhala and
// Persian. Of the invisible characters they alone are needed to read a name.
const joiners = "\u200c\u200d"

// Plain makes a text of somebody else's fit for a terminal: no control
// characters, no line's end, and nothing that turns the direction of writing.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && !strings.ContainsRune(joiners, r) {
			return '?'
		}
		return r
	}, text)
}

// Of is how many columns a terminal needs for a plain text. It counts what a
// person sees as one sign (an accent with its letter, an emoji of several), by
// Unicode's rules for grapheme clusters.
func Of(text string) int { return uniseg.StringWidth(text) }

// ellipsis stands for what was cut; it takes one column.
const ellipsis = "…"

// Cut brings a plain text to at most that many columns, the ellipsis at its end
// included. No sign is taken apart.
func Cut(text string, columns int) string {
	if Of(text) <= columns {
		return text
	}
	if columns < 1 {
		return ""
	}
	used, rest, state := 0, text, -1
	for rest != "" {
		_, after, width, next := uniseg.FirstGraphemeClusterInString(rest, state)
		if used += width; used > columns-1 {
			break
		}
		rest, state = after, next
	}
	return strings.TrimSuffix(text, rest) + ellipsis
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
