package starter

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"waybill/activities"
	"waybill/internal/herald"
)

// due is a row whose retry is due.
var due = row{Candidate: herald.Candidate{Retry: true}}

func TestNeverTriedRowsAndDueRetriesAlternate(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.hooks = []string{"a"}
		w.addAs(due, "a/r1", "a/r2", "a/r3")
		w.add("a/1", "a/2", "a/3", "a/4")
	}, func(w *world) {
		w.expect("a/1", "a/r1", "a/2", "a/r2", "a/3", "a/r3", "a/4")
	})
}

// Due retries make no noise; the sweep finds them, and then all of them.
func TestDueRetriesAreFoundByTheSweep(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.hooks = []string{"a"} }, func(w *world) {
		w.wait(20 * time.Second)
		var names []string
		for n := range 5*lookahead + 3 {
			names = append(names, fmt.Sprintf("a/r%d", n))
		}
		w.addAs(row{Candidate: due.Candidate, silent: true}, names...)
		w.wait(sweepSteps * sweepEvery)
		if got := w.requests(); !slices.Equal(got, names) {
			t.Errorf("started %d of %d", len(got), len(names))
		}
	})
}

// Rows that cannot be processed do not hide the good ones behind them.
func TestRowsAtRestDoNotFillTheLine(t *testing.T) {
	const bad = 10 * lookahead
	play(t, func(w *world, _ *Config) {
		w.hooks = []string{"a"}
		w.attempt = func(r *row) (activities.Ended, time.Duration) {
			if r.Modified == 1 {
				return activities.Ended{State: activities.Untouched}, 0
			}
			r.done = true
			return activities.Ended{State: activities.Won}, 0
		}
		for n := range bad {
			w.addAs(row{Candidate: herald.Candidate{Modified: 1}}, fmt.Sprintf("a/bad%d", n))
		}
		w.add("a/good")
	}, func(w *world) {
		if got := w.requests(); len(got) != bad+1 || got[bad] != "a/good" {
			t.Errorf("started %d", len(got))
		}
		w.wait(untouchedRest - time.Second)
		if n := len(w.requests()); n != bad+1 {
			t.Errorf("bad rows were looked at again before their time: %d", n)
		}
		// Another version is another row.
		w.change(func() { w.rows[0].Modified = 2 })
		w.wait(sweepSteps * sweepEvery)
		if n := len(w.ats("a/bad0")); n != 2 {
			t.Errorf("a changed row was started %d times", n)
		}
		w.wait(2 * sweepSteps * sweepEvery)
		w.stop()
		if n := len(w.starter.feeds["a"].restedBy); n > bad {
			t.Errorf("%d rests are kept", n)
		}
	})
}

func TestLateCommitsBelowTheWatermark(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.hooks = []string{"a", "b"} }, func(w *world) {
		w.wait(5 * time.Second)
		late := w.addAs(row{hidden: true}, "a/late")[0]
		w.add("b/1")
		w.wait(3 * time.Second)
		w.expect("b/1")
		w.change(func() { late.hidden = false })
		w.wait(sweepEvery)
		w.expect("b/1", "a/late")
	})
}

// Rows in a state that nobody knows are reported once each, those that were
// there before the start too, and hold nothing up.
func TestStrangeRowsAreReportedOnce(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.hooks = []string{"a"}
		w.addAs(row{odd: true, done: true}, "a/before")
	}, func(w *world) {
		w.wait(3 * sweepEvery)
		w.addAs(row{odd: true, done: true}, "a/after")
		w.add("a/good")
		w.wait(sweepSteps * sweepEvery)
		w.expect("a/good")
		if n := w.logged("cannot be processed"); n != 2 {
			t.Errorf("%d reports of two rows", n)
		}
	})
}

// A row that committed so late that nobody looks there any more.
func TestTheSweepFindsWhatNobodyAnnounced(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.hooks = []string{"a"} }, func(w *world) {
		w.wait(time.Second)
		w.addAs(row{silent: true}, "a/1")
		w.wait(sweepSteps * sweepEvery)
		w.expect("a/1")
	})
}
