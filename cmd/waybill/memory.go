package main

// gcPercent lets the heap grow by half between two collections instead of to
// its double. Most of what lives here is workflows asleep, and their double is
// the process's peak; collecting took 2 % of its CPU when that was seen
// (docs/performance.md).
const gcPercent = 50

// saveMemory sets that, unless somebody has decided with the Go runtime's own
// variables.
func saveMemory(getenv func(string) string, set func(percent int) int) {
	if getenv("GOGC") == "" && getenv("GOMEMLIMIT") == "" {
		set(gcPercent)
	}
}
