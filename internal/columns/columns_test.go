package columns_test

import (
	"strings"
	"testing"
	"unicode"

	"waybill/internal/columns"
)

// What a database holds must not reach a terminal as commands to it.
func TestPlainTextsCommandNoTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"certificate expired":   "certificate expired",
		"Größe 日本":              "Größe 日本",
		"evil\x1b[2J\nx\ry\x00": "evil?[2J?x?y?",
		"\u202ereversed":        "?reversed",
		"bad utf-8 \xff":        "bad utf-8 \ufffd",
		"👩\u200d💻 ශ්\u200dරී":   "👩\u200d💻 ශ්\u200dරී",
	} {
		if got := columns.Plain(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// Of the format characters, which are invisible, only the joiners are left in a
// plain text, and they take no room.
func TestNoFormatCharacterIsPlain(t *testing.T) {
	for r := range rune(unicode.MaxRune + 1) {
		joins := r == '\u200c' || r == '\u200d'
		if unicode.Is(unicode.Cf, r) && (columns.Plain(string(r)) == "?") == joins {
			t.Errorf("%U is left: %v", r, !joins)
		}
	}
	if n := columns.Of("a\u200cb\u200d"); n != 2 {
		t.Errorf("two letters and two joiners take %d columns", n)
	}
}

// Room is counted by what a person sees as one sign, however many characters it
// is made of.
func TestSignsAreCountedWhole(t *testing.T) {
	for text, want := range map[string]int{
		"ab":                 2,
		"e\u0301\u0323x":     2,
		"日本":                 4,
		"🪝":                  2,
		"❤\ufe0f":            2, // a sign of text, asked for as emoji
		"👍🏽":                 2, // with a tone of skin
		"👩\u200d👩\u200d👧":    2, // a family
		"🏳\ufe0f\u200d🌈":     2,
		"🇩🇪":                 2,
		"1\ufe0f\u20e3":      1, // a keycap: its digit in a frame
		"\u1112\u1161\u11ab": 2, // a syllable of Hangul in three parts
		"":                   0,
	} {
		if got := columns.Of(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}

func TestTextsAreCutToTheirColumns(t *testing.T) {
	for _, tt := range []struct {
		in      string
		columns int
		want    string
	}{
		{strings.Repeat("n", 40), 40, strings.Repeat("n", 40)},
		{strings.Repeat("n", 41), 40, strings.Repeat("n", 39) + "…"},
		{strings.Repeat("日", 20), 40, strings.Repeat("日", 20)},
		{strings.Repeat("日", 21), 40, strings.Repeat("日", 19) + "…"},
		{strings.Repeat("e\u0301", 40), 40, strings.Repeat("e\u0301", 40)},
		{strings.Repeat("e\u0301", 3), 2, "e\u0301…"},
		{"👩\u200d👩\u200d👧 family", 2, "…"},
		{"👩\u200d👩\u200d👧 family", 3, "👩\u200d👩\u200d👧…"},
		{"x👍🏽 yes", 3, "x…"},
		{"x👍🏽 yes", 4, "x👍🏽…"},
		{"ab", 1, "…"},
		{"日", 1, "…"},
		{"ab", 0, ""},
		{"ab", -1, ""},
		{"", 0, ""},
	} {
		if got := columns.Cut(tt.in, tt.columns); got != tt.want || columns.Of(got) > max(tt.columns, 0) {
			t.Errorf("%q in %d columns: %q, %d columns", tt.in, tt.columns, got, columns.Of(got))
		}
	}
}

func TestTextsAreFoldedBetweenWords(t *testing.T) {
	for _, tt := range []struct {
		in             string
		screen, indent int
		want           string
	}{
		{"one two three", 0, 5, "one two three"},
		{"one two three", 13, 0, "one two three"},
		{"one two three", 12, 0, "one two\nthree"},
		{"one two three", 9, 2, "one two\n  three"},
		{"one two three", 3, 2, "one\n  two\n  three"},
		{"日本語 日本", 11, 0, "日本語 日本"},
		{"日本語 日本", 10, 0, "日本語\n日本"},
		{"", 10, 4, ""},
	} {
		if got := columns.Fold(tt.in, tt.screen, tt.indent); got != tt.want {
			t.Errorf("%q on %d columns from %d: %q, want %q", tt.in, tt.screen, tt.indent, got, tt.want)
		}
	}
}
