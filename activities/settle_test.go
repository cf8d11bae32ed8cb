package activities_test

import (
	"testing"
	"time"

	"waybill/activities"
	"waybill/internal/herald"
)

// unwritten is a world in which an attempt has a result that the database does
// not take for now.
func unwritten(t *testing.T, status int, point string) (*world, activities.SendResult) {
	t.Helper()
	w := newWorld(t)
	w.to.answer = answers(status)
	c := w.claims(activities.Won)
	w.faults.set(point, 1<<30)
	res := w.sends(c, activities.Unwritten)
	eventually(t, "the process keeps trying", func() bool { n, _ := w.counts.writeBacks(); return n == 1 })
	if res.Unwritten == nil || w.gate.slots() != 1 || len(w.gate.ends()) != 0 {
		t.Fatalf("send %+v, %d slots, ends %v: the hook must be held until the result stands", res, w.gate.slots(), w.gate.ends())
	}
	return w, res
}

// over waits for the process to see the result through.
func (w *world) over() {
	w.Helper()
	eventually(w.T, "the hook is free again", func() bool { return len(w.gate.ends()) == 1 })
	w.free()
	w.posted(1)
	eventually(w.T, "nothing waits to be written", func() bool { n, _ := w.counts.writeBacks(); return n == 0 })
	if e := w.gate.ends(); e[0].State != activities.Won {
		w.Errorf("told the feed %+v", e)
	}
}

// The process that knows the answer keeps trying, whatever becomes of Temporal.
func TestTheSenderWritesWhenTheDatabaseIsBack(t *testing.T) {
	w, _ := unwritten(t, 200, "finish before")
	w.pass(7 * time.Second)
	w.faults.set("finish before", 0)
	w.over()
	// The moment of completion is that of the answer, not of the late write.
	if r := w.rows.row(id); r.Status != herald.StatusSent || r.LastEpoch != start || r.Modified != start+7 {
		t.Errorf("row %+v", r)
	}
	w.claims(activities.Finished)
	if n := len(w.lines("late result settled")); n != 1 {
		t.Errorf("%d lines about it", n)
	}
}

// Temporal carries the same result: any process may write it, and the sender
// finds it standing.
func TestWriteBackWritesForTheSender(t *testing.T) {
	for _, status := range []int{200, 500} {
		w, res := unwritten(t, status, "finish before")
		in := *res.Unwritten
		if in.Completed != start || in.Version != w.rows.row(id).Modified || in.Ref != ref() {
			t.Errorf("to be written: %+v", in)
		}
		if _, err := w.WriteBack(t.Context(), in); err == nil {
			t.Error("written into a database that is away")
		}
		w.faults.set("finish before", 0)
		for range 3 {
			got, err := w.WriteBack(t.Context(), in)
			if err != nil || got.Outcome != herald.Written {
				t.Errorf("%d: %+v, %v", status, got, err)
			}
		}
		w.over()
		if r := w.rows.row(id); r.LastEpoch != start {
			t.Errorf("row %+v", r)
		}
	}
}

func TestAFirstWriteWhoseAcknowledgementIsLost(t *testing.T) {
	for _, status := range []int{200, 500} {
		w, res := unwritten(t, status, "finish after")
		written := w.rows.row(id)
		w.faults.set("finish after", 0)
		got, err := w.WriteBack(t.Context(), *res.Unwritten)
		if err != nil || got.Outcome != herald.Written {
			t.Errorf("%d: %+v, %v", status, got, err)
		}
		w.over()
		if r := w.rows.row(id); r.Modified != written.Modified || r.LastEpoch != written.LastEpoch {
			t.Errorf("%d: written again: %+v, first %+v", status, r, written)
		}
	}
}

func TestALateWriteMeetsOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		meanwhile func(w *world)
		want      herald.WriteOutcome
	}{
		"PHP failed it": {func(w *world) { w.row(func(r *herald.Request) { r.Status = herald.StatusFailed }) }, herald.Fenced},
		"PHP broke it":  {func(w *world) { w.row(func(r *herald.Request) { r.Properties = nil; r.Modified++ }) }, herald.Fenced},
		"claimed anew":  {func(w *world) { w.foreignClaim() }, herald.Fenced},
		"collected":     {func(w *world) { w.rows.collect(id) }, herald.Collected},
	} {
		t.Run(name, func(t *testing.T) {
			w, res := unwritten(t, 500, "finish before")
			tt.meanwhile(w)
			before, _ := w.rows.find(id)
			w.faults.set("finish before", 0)
			got, err := w.WriteBack(t.Context(), *res.Unwritten)
			if err != nil || got.Outcome != tt.want {
				t.Errorf("%+v, %v, want %s", got, err, tt.want)
			}
			w.over()
			if after, _ := w.rows.find(id); after.Modified != before.Modified || after.Status != before.Status {
				t.Errorf("the row went from %+v to %+v", before, after)
			}
		})
	}
}

// The second failure of a row looks like its first. It is written all the same,
// and overtaken it is not taken for written.
func TestALateSecondFailure(t *testing.T) {
	for _, overtaken := range []bool{false, true} {
		w := newWorld(t)
		w.to.answer = answers(500)
		w.sends(w.claims(activities.Won), activities.Recorded)
		w.pass(61 * time.Second)
		c := w.claims(activities.Won)
		w.faults.set("finish before", 1<<30)
		res := w.sends(c, activities.Unwritten)
		if overtaken {
			w.pass(40 * time.Second)
			w.foreignClaim()
		}
		w.faults.set("finish before", 0)
		want := map[bool]herald.WriteOutcome{false: herald.Written, true: herald.Fenced}[overtaken]
		if got, err := w.WriteBack(t.Context(), *res.Unwritten); err != nil || got.Outcome != want {
			t.Errorf("overtaken %v: %+v, %v, want %s", overtaken, got, err, want)
		}
		eventually(t, "the hook is free again", func() bool { return w.gate.slots() == 0 })
	}
}

// A result is known and stays so when the hook is lost: it is written as soon
// as the database takes it, and the fence protects whoever has the hook then.
func TestLosingTheHookDoesNotLoseTheResult(t *testing.T) {
	w, _ := unwritten(t, 200, "finish before")
	close(w.gate.lost)
	w.faults.set("finish before", 0)
	w.over()
	if r := w.rows.row(id); r.Status != herald.StatusSent {
		t.Errorf("row %+v", r)
	}
}

// While a known result waits nobody sends to the hook, not even after the lease.
func TestAKnownResultIsNotSentAgain(t *testing.T) {
	w, _ := unwritten(t, 200, "finish before")
	for range 3 {
		w.pass(time.Minute)
		w.claims(activities.Busy)
	}
	w.posted(1)
	w.gate.ended = nil
	w.faults.set("finish before", 0)
	w.over()
}

func TestWriteBackFailsUntilTheDatabaseAnswers(t *testing.T) {
	w, res := unwritten(t, 200, "finish before")
	w.faults.set("load before", 1)
	if _, err := w.WriteBack(t.Context(), *res.Unwritten); err == nil {
		t.Error("no error without a database")
	}
	w.faults.set("finish before", 0)
	w.over()
}

func TestResultOfAConfigurationFailureIsWrittenLate(t *testing.T) {
	w := newWorld(t)
	w.to.answer = replies(activities.Reply{Answer: herald.Answer{Denied: true}, Took: 1})
	c := w.claims(activities.Won)
	w.faults.set("finish before", 1<<30)
	res := w.sends(c, activities.Unwritten)
	if res.Unwritten.Completed != 0 {
		t.Errorf("completed at %d, but nothing was sent", res.Unwritten.Completed)
	}
	w.faults.set("finish before", 0)
	w.over()
	if r := w.rows.row(id); r.Status != herald.StatusFailed || r.LastResult != herald.ResultNone || r.LastEpoch != 0 {
		t.Errorf("row %+v", r)
	}
}
