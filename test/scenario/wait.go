package scenario

import (
	"context"
	"testing"
	"time"
)

// Patience is how long a test waits for something that should happen at once.
// It is long because other packages' tests share the machine's two cores, and
// costs nothing where the thing happens.
const Patience = 45 * time.Second

// lookEvery is the pause between two looks at something that cannot call back.
const lookEvery = 20 * time.Millisecond

// Until looks until ok says yes, at most for the given time. What describes the
// awaited thing; it may be a func() string for the state found at the end.
func Until(t testing.TB, within time.Duration, what any, ok func() bool) {
	t.Helper()
	if !Within(t, within, ok) {
		t.Fatalf("not within %v: %s", within, describe(what))
	}
}

// Within looks like Until, but lets the caller decide what a no means.
func Within(t testing.TB, within time.Duration, ok func() bool) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if ok() {
			return true
		}
		select {
		case <-ctx.Done():
			return ok()
		case <-tick.C:
		}
	}
}

// Never watches for a while and fails when bad comes true: the only way to see
// that something does not happen.
func Never(t testing.TB, during time.Duration, what any, bad func() bool) {
	t.Helper()
	if Within(t, during, bad) {
		t.Fatalf("happened within %v: %s", during, describe(what))
	}
}

func describe(what any) string {
	switch what := what.(type) {
	case func() string:
		return what()
	case string:
		return what
	}
	return "(not described)"
}
