package starter

import (
	"fmt"
	"testing"
)

// inSteady is long enough for a starter to read only the ids of the last minute.
const inSteady = 2 * lateSteps * sweepEvery

func TestAQuietStarterReadsRecentRowsOnceAMinute(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.hooks = []string{"a"}
		for n := range 1000 {
			w.addAs(row{done: true}, fmt.Sprint("a/", n))
		}
	}, func(w *world) {
		w.wait(inSteady)
		before := w.asked("rows since")
		w.wait(10 * lateSteps * sweepEvery)
		if n := w.asked("rows since") - before; n < 10*1000 || n > 11*1000 {
			t.Errorf("%d rows were read in ten quiet minutes beside 1000", n)
		}
	})
}

// Told by a row that no hook's line contains, so that no other look finds it.
func TestLateCommitsOfAStarterThatHasRunForLong(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.hooks = []string{"a", "b"} }, func(w *world) {
		w.wait(inSteady)
		late := w.addAs(row{hidden: true, odd: true, done: true}, "a/late")[0]
		for n := range lateSteps / 2 {
			w.add(fmt.Sprint("b/", n))
			w.wait(sweepEvery)
		}
		w.change(func() { late.hidden = false })
		w.wait(sweepEvery)
		if n := w.logged("cannot be processed"); n != 1 {
			t.Errorf("%d reports of one row within a sweep step", n)
		}
	})
}

// What was open for longer than the sweep looks back is seen when all recent
// ids are read: told here by a row that no hook's line contains.
func TestCommitsThatAreMinutesLate(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.hooks = []string{"a"} }, func(w *world) {
		w.wait(inSteady)
		late := w.addAs(row{hidden: true, odd: true, done: true}, "a/late")[0]
		w.add("a/1")
		w.wait(inSteady)
		w.change(func() { late.hidden = false })
		w.wait(lateSteps * sweepEvery)
		if n := w.logged("cannot be processed"); n != 1 {
			t.Errorf("%d reports of one row", n)
		}
	})
}

// A look that failed may have missed anything: all is read again.
func TestLateCommitsAfterTheQueueWasAway(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.hooks = []string{"a"} }, func(w *world) {
		w.wait(inSteady)
		late := w.addAs(row{hidden: true, odd: true, done: true}, "a/late")[0]
		w.add("a/1")
		w.wait(inSteady + 5*sweepEvery)
		w.breaks("since", errAway)
		w.wait(2 * sweepEvery)
		w.change(func() { late.hidden = false })
		w.breaks("since", nil)
		w.wait(sweepEvery)
		if n := w.logged("cannot be processed"); n != 1 {
			t.Errorf("%d reports of one row", n)
		}
	})
}
