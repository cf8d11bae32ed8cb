package heralddb_test

import (
	"errors"
	"testing"

	"waybill/internal/devstack"
	"waybill/internal/herald"
)

func TestLoadReadsRowAndHook(t *testing.T) {
	f := newFixture(t)
	key := "k'\\\"%_ ünï🔑"
	h, err := f.phorge.CreateHook(t.Context(), devstack.Hook{
		Name: "ä🪝", URI: "http://u:p@127.0.0.1:1/ü?q='\\", Key: key, Status: "firehose",
	})
	f.must(err)
	r := f.insert(devstack.Row{
		HookPHID: h.PHID, ObjectPHID: "PHID-TASK-\xff\x00'\\", Properties: `{"a":"\u0000\\'🎉"}`,
		LastResult: "fail", LastEpoch: 77, Created: now - 7, Modified: now - 3,
	})
	s, err := f.at(now).Load(t.Context(), uint64(r.ID))
	f.must(err)
	got := s.Request
	if got.ID != uint64(r.ID) || got.PHID != r.PHID || got.HookPHID != h.PHID || got.ObjectPHID != r.ObjectPHID ||
		got.Status != herald.StatusQueued || string(got.Properties) != r.Properties || got.LastResult != herald.ResultFail ||
		got.LastEpoch != 77 || got.Created != now-7 || got.Modified != now-3 || s.Now != now {
		t.Errorf("request %+v at %d, inserted %+v", got, s.Now, r)
	}
	if k := s.Hook; k == nil || k.PHID != h.PHID || k.Name != h.Name || k.URI != h.URI || k.Status != "firehose" || string(k.HMACKey) != key {
		t.Errorf("hook %v", k)
	}
}

func TestLoadOfWhatIsGone(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	r := f.insert(devstack.Row{HookPHID: "PHID-HWBH-gone"})
	s, err := d.Load(t.Context(), uint64(r.ID))
	if err != nil || s.Hook != nil || s.Request.HookPHID != "PHID-HWBH-gone" {
		t.Errorf("hook gone: %v, %v", s.Hook, err)
	}
	f.must(f.phorge.Collect(t.Context(), r.PHID))
	if _, err := d.Load(t.Context(), uint64(r.ID)); !errors.Is(err, herald.ErrGone) {
		t.Errorf("row gone: %v", err)
	}
}

// The breaker's evidence is the threshold-th newest failure: whether it lies in
// the window is for the activities to say, at the moment of Now.
func TestBreakerEvidence(t *testing.T) {
	for _, tt := range []struct {
		name     string
		failures int
		want     int64
	}{
		{"none", 0, 0},
		{"one below the threshold", threshold - 1, 0},
		{"at the threshold the oldest counts", threshold, now - threshold},
		{"above it the threshold-th newest", threshold + 1, now - threshold},
		{"many", 5 * threshold, now - threshold},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			other := f.newHook("other")
			for i := range tt.failures {
				// Rows count, whether they will be tried again or not; not attempts.
				status := []string{"queued", "failed"}[i%2]
				f.insert(devstack.Row{Status: status, LastResult: "fail", LastEpoch: now - 1 - int64(i), Created: now - 500})
			}
			for range 2 * threshold {
				f.insert(devstack.Row{Status: "sent", LastResult: "okay", LastEpoch: now})
				f.insert(devstack.Row{Status: "failed", LastResult: "none", LastEpoch: 0})
				f.insert(devstack.Row{HookPHID: other.PHID, LastResult: "fail", LastEpoch: now})
			}
			r := f.insert(devstack.Row{})
			s, err := f.at(now).Load(t.Context(), uint64(r.ID))
			if err != nil || s.ThresholdFailure != tt.want {
				t.Errorf("evidence %d, want %d (%v)", s.ThresholdFailure, tt.want, err)
			}
		})
	}
}

func TestBreakerEvidenceFollowsTheThreshold(t *testing.T) {
	f := newFixture(t)
	for i := range int64(4) {
		f.insert(devstack.Row{LastResult: "fail", LastEpoch: now - i})
	}
	r := f.insert(devstack.Row{})
	for threshold, want := range map[int]int64{0: now, 1: now, 2: now - 1, 4: now - 3, 5: 0} {
		c := f.config(f.dsn(""))
		c.BreakerThreshold = threshold
		s, err := f.open(c).Load(t.Context(), uint64(r.ID))
		if err != nil || s.ThresholdFailure != want {
			t.Errorf("threshold %d: evidence %d, want %d (%v)", threshold, s.ThresholdFailure, want, err)
		}
	}
}

func TestCounts(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	if q, s, x, err := d.CountRequests(t.Context()); q+s+x != 0 || err != nil {
		t.Errorf("empty table: %d %d %d, %v", q, s, x, err)
	}
	if n, age, err := d.Backlog(t.Context()); n != 0 || age != 0 || err != nil {
		t.Errorf("empty backlog: %d, %s, %v", n, age, err)
	}
	disabled, err := f.phorge.CreateHook(t.Context(), devstack.Hook{Name: "off", URI: "x", Status: "disabled"})
	f.must(err)
	for i, status := range []string{"queued", "queued", "queued", "sent", "sent", "failed", "odd"} {
		f.insert(devstack.Row{Status: status, Created: now - int64(100*i)})
	}
	f.insert(devstack.Row{LastResult: "okay", Created: now - 5000}) // queued, but no candidate
	if q, s, x, err := d.CountRequests(t.Context()); q != 4 || s != 2 || x != 1 || err != nil {
		t.Errorf("requests: %d queued, %d sent, %d failed, %v", q, s, x, err)
	}
	if n, age, err := d.Backlog(t.Context()); n != 4 || age.Seconds() != 5000 || err != nil {
		t.Errorf("backlog: %d, %s, %v", n, age, err)
	}
	if n, oldest, err := d.Queued(t.Context(), f.hook.PHID, 100); n != 3 || oldest != now-200 || err != nil {
		t.Errorf("queued: %d since %d, %v", n, oldest, err)
	}
	if n, _, err := d.Queued(t.Context(), f.hook.PHID, 2); n != 2 || err != nil {
		t.Errorf("queued, at most two: %d, %v", n, err)
	}
	if n, oldest, err := d.Queued(t.Context(), disabled.PHID, 2); n != 0 || oldest != 0 || err != nil {
		t.Errorf("nothing queued: %d since %d, %v", n, oldest, err)
	}
	if total, active, err := d.CountHooks(t.Context()); total != 2 || active != 1 || err != nil {
		t.Errorf("hooks: %d of %d, %v", active, total, err)
	}
	hooks, err := d.Hooks(t.Context())
	if err != nil || len(hooks) != 2 || hooks[0].PHID != f.hook.PHID || hooks[1].Status != "disabled" || hooks[1].Name != "off" {
		t.Errorf("hooks %+v, %v", hooks, err)
	}
}
