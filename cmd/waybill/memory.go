package main

// gcPercent lets the heap grow by half between two collections instead of to
// its double. Most of what lives here is workflows asleep, and their double is
// the process's peak (docs/performance.md).
const gcPercent = 50

// saveMemory sets that, unless somebody has decided with the Go runtime's own
// variable. GOMEMLIMIT is another one: it bounds the whole, and a heap far below
// it still grows as GOGC says.
func saveMemory(getenv func(string) string, set func(percent int) int) {
	if getenv("GOGC") == "" {
		set(gcPercent)
	}
}
