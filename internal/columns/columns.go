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
