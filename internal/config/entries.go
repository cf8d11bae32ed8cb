package config

import (
	"slices"
	"strings"
)

// Entry is one variable with its effective value, for people. No field holds
// a secret.
type Entry struct {
	Name    string
	Value   string // effective and masked; empty when there is none
	Default string // as the documentation words it
	Source  string // "environment", "default", "derived" (from another variable) or "raised" (see Lease)
	Help    string
}

// Entries lists every variable in the order of the documentation.
func (c Config) Entries() []Entry {
	entries := make([]Entry, 0, len(variables))
	for _, v := range variables {
		entry := v.describe()
		entry.Value, entry.Source = v.show(&c), c.sources[v.name]
		entries = append(entries, c.effective(entry))
	}
	return entries
}

// effective replaces what was configured by what holds, where the two differ.
func (c Config) effective(entry Entry) Entry {
	switch entry.Name {
	case "WAYBILL_HERALD_CLAIM_LEASE":
		lease, warning := c.Lease()
		entry.Value = compact(lease)
		if warning != "" {
			entry.Source = "raised"
		}
	case "WAYBILL_HERALD_LOCK_DSN":
		if entry.Value == "" && c.Herald.DSN.Set() {
			entry.Value, entry.Source = c.Herald.LockDSN().String(), sourceDerived
		}
	}
	return entry
}

// Describe lists every variable without values, for the help text.
func Describe() []Entry {
	entries := make([]Entry, 0, len(variables))
	for _, v := range variables {
		entries = append(entries, v.describe())
	}
	return entries
}

func (v variable) describe() Entry {
	shown := v.shown
	if shown == "" {
		shown = v.fallback
	}
	return Entry{Name: v.name, Default: shown, Help: v.help}
}

const prefix = "WAYBILL_"

// Unknown looks through an environment ("NAME=value" each) for WAYBILL_*
// names that mean nothing and returns one warning per name, with the nearest
// name that does. A warning and no fault: a newer Waybill's variables must not
// stop an older one during a rolling update. Values are never looked at.
func Unknown(environ []string) []string {
	var warnings []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, prefix) || known(name) {
			continue
		}
		warning := name + ": no such variable"
		if near := nearest(name); near != "" {
			warning += "; did you mean " + near + "?"
		}
		warnings = append(warnings, warning)
	}
	slices.Sort(warnings)
	return slices.Compact(warnings)
}

// temporalProgram is read by `waybill dev`, the Makefile and the tests, and is no
// setting of Waybill's own.
const temporalProgram = "WAYBILL_TEMPORAL_BIN"

func known(name string) bool {
	return name == temporalProgram || slices.ContainsFunc(variables, func(v variable) bool { return v.name == name })
}

// nearest is the known name with the fewest edits, or none when even that one
// differs in more than a third of what follows the prefix.
func nearest(name string) string {
	best, fewest := "", len(name)
	for _, v := range variables {
		if d := edits(name, v.name); d < fewest {
			best, fewest = v.name, d
		}
	}
	if fewest > max(2, (len(name)-len(prefix))/3) {
		return ""
	}
	return best
}

// edits is the Levenshtein distance of two names, one row at a time.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
