package activities_test

import (
	"context"
	"testing"
	"time"

	"waybill/activities"
	"waybill/internal/herald"
)

// points are where a process can die or lose an answer during a delivery.
var points = []string{
	"", "load before", "object before", "paused before", "claim before", "claim after",
	"after claim", "during the call", "finish before", "finish after", "after send",
}

// delivery plays the workflow of one request over crashes of its process, and
// watches what must hold at each step.
type delivery struct {
	*world
	crash    string
	postedBy map[int64]int
	lastPost time.Time
}

// TestEveryCrashDeliversWithoutHaste runs a delivery with a crash at each point
// and each kind of answer: the row is finished in the end, a claim makes at most
// one call, a second call comes only after the lease, and none after a 2xx that
// was written.
func TestEveryCrashDeliversWithoutHaste(t *testing.T) {
	for _, point := range points {
		for _, status := range []int{200, 503} {
			for _, die := range []bool{false, true} {
				name := point + " lost"
				if die {
					name = point + ", then the process dies"
				}
				t.Run(name, func(t *testing.T) {
					d := &delivery{world: newWorld(t), crash: point, postedBy: map[int64]int{}}
					d.run(status, die)
				})
			}
		}
	}
}

func (d *delivery) run(status int, die bool) {
	d.Helper()
	first := true
	d.to.answer = func(context.Context, activities.Call) activities.Reply {
		d.called()
		if d.crash == "during the call" && first {
			first = false
			return activities.Reply{Aborted: true, Sent: true, Took: 1}
		}
		s := status
		status = 200 // whatever it said first, it recovers
		return reply(herald.Answer{HTTPStatus: s})
	}
	d.faults.set(d.crash, 1)
	for step := range 20 {
		if r := d.rows.row(id); r.Status != herald.StatusQueued {
			d.finished(r)
			return
		}
		wait := d.attempt()
		if die && step == 0 {
			close(d.gate.lost)
			d.restart()
			wait = 0
		}
		d.pass(wait)
	}
	d.Fatalf("not finished after 20 steps: %+v", d.rows.row(id))
}

// attempt is one round of the workflow; it returns how long that one waits.
func (d *delivery) attempt() time.Duration {
	d.Helper()
	c, err := d.ask()
	if err != nil {
		return 5 * time.Second
	}
	if c.State != activities.Won {
		return max(c.Wait, time.Second)
	}
	if d.crash == "after claim" {
		d.crash = ""
		return 0 // the workflow task is lost, the claim stays
	}
	s := d.send(c)
	if s.State == activities.Unwritten {
		// The write-back of the workflow and the sender's own may both come.
		if _, err := d.WriteBack(d.Context(), *s.Unwritten); err != nil {
			d.Error(err)
		}
		eventually(d.T, "the sender is done", func() bool { return d.gate.slots() == 0 })
	}
	if d.crash == "after send" {
		d.crash = ""
		if again := d.send(c); again.State != activities.Unsent {
			d.Errorf("a send that runs again: %+v", again)
		}
	}
	return max(s.Wait, time.Second)
}

// called is at the receiver.
func (d *delivery) called() {
	r := d.rows.row(id)
	if d.postedBy[r.Modified]++; d.postedBy[r.Modified] > 1 {
		d.Errorf("a second call under version %d", r.Modified)
	}
	if r.Status != herald.StatusQueued {
		d.Errorf("called about a row that is %s", r.Status)
	}
	if now := d.clock.Now(); !d.lastPost.IsZero() && now.Sub(d.lastPost) < rules().Lease {
		d.Errorf("called again after %s", now.Sub(d.lastPost))
	}
	d.lastPost = d.clock.Now()
}

func (d *delivery) finished(r herald.Request) {
	d.Helper()
	if r.Status != herald.StatusSent || r.LastResult != herald.ResultOkay {
		d.Errorf("ended as %+v", r)
	}
	if n := len(d.postedBy); n == 0 || n > 3 {
		d.Errorf("%d calls", n)
	}
	d.claims(activities.Finished)
	d.free()
}
