// Package doctor judges what was seen of a Phorge's webhook queue and of what
// Waybill needs around it: facts go in, findings come out. It is pure; the facts
// are gathered by cmd/waybill.
package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// Level says how much a finding matters.
type Level string

// The levels, the least first.
const (
	// OK is as it should be.
	OK Level = "ok"
	// Note is worth knowing and asks for nothing.
	Note Level = "note"
	// Warning costs something, or will: deliveries go on.
	Warning Level = "warning"
	// Problem keeps deliveries from being made, or from being made once.
	Problem Level = "problem"
)

// levels in their order.
func levels() []Level { return []Level{OK, Note, Warning, Problem} }

// Finding is what one check came to.
type Finding struct {
	// Check names what was looked at: programs may rely on it.
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Text is what was seen, and Advice what to do about it, empty where nothing is
	// to be done. Neither has a URI, a key or a password in it.
	Text   string `json:"text"`
	Advice string `json:"advice"`
}

// Worst is the highest level of all findings, OK of none.
func Worst(findings []Finding) Level {
	worst := OK
	for _, f := range findings {
		if slices.Index(levels(), f.Level) > slices.Index(levels(), worst) {
			worst = f.Level
		}
	}
	return worst
}

// found makes a finding.
func found(check string, level Level, text, advice string) Finding {
	return Finding{Check: check, Level: level, Text: text, Advice: advice}
}

// named is how many things a text names before it counts the rest.
const named = 5

// some names a few of many, in order.
func some(names []string) string {
	names = slices.Sorted(slices.Values(names))
	if len(names) <= named {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:named], ", "), len(names)-named)
}

// counted is a number and what it counts.
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
