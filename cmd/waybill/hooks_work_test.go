package main

import (
	"strings"
	"testing"
)

// What a database holds must not reach a terminal as commands to it.
func TestTextsInTablesArePlain(t *testing.T) {
	for in, want := range map[string]string{
		"certificate expired":   "certificate expired",
		"Größe 日本":              "Größe 日本",
		"evil\x1b[2J\nx\ry\x00": "evil?[2J?x?y?",
		"\u202ereversed":        "?reversed",
		strings.Repeat("n", 41): strings.Repeat("n", 39) + "…",
		strings.Repeat("n", 40): strings.Repeat("n", 40),
		"bad utf-8 \xff":        "bad utf-8 \ufffd",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}
