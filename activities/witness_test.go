package activities_test

import (
	"sync"
	"testing"

	"waybill/activities"
	"waybill/internal/herald"
)

// witness keeps what it is told.
type witness struct {
	mu    sync.Mutex
	wrote []herald.ResultWrite
	found []herald.Ending
}

func (w *witness) Wrote(ref activities.Ref, r herald.ResultWrite) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ref.ID == r.Claim.ID && ref.PHID != "" && ref.HookPHID != "" {
		w.wrote = append(w.wrote, r)
	}
}

func (w *witness) Found(s herald.Snapshot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found = append(w.found, s.Request.Ending())
}

// told is how often it was told of each.
func (w *witness) told() (wrote, found int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wrote), len(w.found)
}

// silence is what Phorge does to a row of a silent site.
func silence(r *herald.Request) {
	r.Status, r.LastResult, r.LastEpoch = herald.StatusFailed, herald.ResultNone, 0
	r.Properties = []byte(`{"retry":"forever","errorType":"hook","errorCode":"silent"}`)
	r.Modified++
}

const silentEnding = "failed/none hook silent"

func TestEveryWrittenResultIsWitnessed(t *testing.T) {
	for name, tt := range map[string]struct {
		status  herald.Status
		prepare func(*world)
		end     func(*world)
	}{
		"delivered": {herald.StatusSent, func(*world) {}, func(w *world) { w.send(w.claims(activities.Won)) }},
		"misconfigured": {herald.StatusFailed, func(w *world) { w.rows.hook.Status = "disabled" },
			func(w *world) { w.claims(activities.Misconfigured) }},
		"written back": {herald.StatusSent, func(w *world) { w.faults.set("finish before", 1) }, func(w *world) {
			res := w.send(w.claims(activities.Won))
			if res.State != activities.Unwritten {
				t.Fatalf("send: %+v", res)
			}
			if out, err := w.WriteBack(w.Context(), *res.Unwritten); err != nil || out.Outcome != herald.Written {
				t.Errorf("write back: %+v, %v", out, err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.prepare(w)
			tt.end(w)
			w.witness.mu.Lock()
			defer w.witness.mu.Unlock()
			if n := len(w.witness.wrote); n == 0 || w.witness.wrote[0].Verdict.Status != tt.status || len(w.witness.found) > 0 {
				t.Errorf("told of %+v and %v", w.witness.wrote, w.witness.found)
			}
		})
	}
}

// A row that Phorge silenced is seen whenever its turn comes: before the claim
// and when the result finds it in the way.
func TestASilencedRowIsWitnessed(t *testing.T) {
	t.Run("before the claim", func(t *testing.T) {
		w := newWorld(t)
		silence(w.rows.rows[id])
		w.claims(activities.Finished)
		if wrote, found := w.witness.told(); wrote != 0 || found != 1 || w.witness.found[0].String() != silentEnding {
			t.Errorf("told of %d writes and %v", wrote, w.witness.found)
		}
	})
	t.Run("under way", func(t *testing.T) {
		w := newWorld(t)
		c := w.claims(activities.Won)
		w.rows.mu.Lock()
		silence(w.rows.rows[id])
		w.rows.mu.Unlock()
		if res := w.send(c); res.State != activities.Overtaken {
			t.Fatalf("send: %+v", res)
		}
		if wrote, found := w.witness.told(); wrote != 0 || found != 1 || w.witness.found[0].String() != silentEnding {
			t.Errorf("told of %d writes and %v", wrote, w.witness.found)
		}
		line := w.logs.FilterMessage("attempt").All()
		if len(line) != 1 || line[0].ContextMap()["stands"] != silentEnding || line[0].ContextMap()["status"] != "sent" {
			t.Errorf("the attempt's lines %v say not what stands", line)
		}
	})
}

// What stands is for people: when it cannot be read the delivery ends as it
// would have.
func TestARefusalWhoseRowCannotBeReadEndsAllTheSame(t *testing.T) {
	w := newWorld(t)
	c := w.claims(activities.Won)
	w.rows.mu.Lock()
	silence(w.rows.rows[id])
	w.rows.mu.Unlock()
	w.faults.set("load before", 1)
	if res := w.send(c); res.State != activities.Overtaken {
		t.Fatalf("send: %+v", res)
	}
	if _, found := w.witness.told(); found != 0 {
		t.Error("witnessed what was not read")
	}
	if got := w.logs.FilterMessage("attempt").All()[0].ContextMap()["stands"]; got != "unreadable" {
		t.Errorf("stands %q", got)
	}
}
