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
	} {
		if got := columns.Plain(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// Invisible characters have no width of their own to count, as none of them is
// left in a plain text.
func TestNoFormatCharacterIsPlain(t *testing.T) {
	for r := range rune(unicode.MaxRune + 1) {
		if unicode.Is(unicode.Cf, r) && columns.Plain(string(r)) != "?" {
			t.Errorf("%U is left", r)
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
