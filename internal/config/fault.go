package config

import (
	"strconv"
	"strings"
	"unicode"
)

// Fault is one thing wrong with one variable. Its texts hold no secret.
type Fault struct {
	Name  string // the variable
	Wrong string // what is wrong, a predicate: `"15" has no unit`
	Right string // what would be right, with an example
}

// Faults are all faults of a configuration, in the order of the table in the
// documentation. It is the error that Load returns.
type Faults []Fault

// Error writes one line per fault.
func (f Faults) Error() string {
	lines := make([]string, 0, len(f))
	for _, fault := range f {
		lines = append(lines, fault.Name+": "+fault.Wrong+"; "+fault.Right)
	}
	return strings.Join(lines, "\n")
}

// complaint is what a parser has to say before it is known about which
// variable. An empty right stands for the variable's usual one.
type complaint struct{ wrong, right string }

// complain is the list of the one complaint most parsers end with.
func complain(wrong string) []complaint { return []complaint{{wrong: wrong}} }

// longestEcho bounds how much of a wrong value a message repeats; every
// legal value that is repeated at all (a duration, a network, a word) is
// shorter.
const longestEcho = 43

// echo quotes a wrong value for a message, unless it might be a secret that
// ended up in the wrong variable: a DSN has an @, a key is long, a file's
// content has line breaks.
func echo(value string) string {
	suspicious := len(value) > longestEcho || strings.Contains(value, "@") ||
		strings.Contains(value, "-----") || strings.ContainsFunc(value, unicode.IsControl)
	if suspicious {
		return "the value (" + strconv.Itoa(len(value)) + " bytes, not repeated here)"
	}
	return strconv.Quote(value)
}
