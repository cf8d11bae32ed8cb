package heralddb_test

import (
	"cmp"
	"slices"
	"testing"

	"waybill/internal/devstack"
	"waybill/internal/herald"
)

// spread is every state that a row can be in, as far as candidates care: all
// statuses and results, known or not, with moments on both sides of each edge.
func spread() (rows []devstack.Row) {
	created := now - 1000
	for _, status := range []string{"queued", "sent", "failed", "odd"} {
		for _, last := range []string{"none", "okay", "fail", "odd"} {
			for _, epoch := range []int64{0, created, now - backoff, now - backoff + 1, now, now + 500} {
				for _, modified := range []int64{
					created, created + 1, epoch, epoch + 2, epoch + 3, now - lease, now - lease + 1, now, now + 500,
				} {
					rows = append(rows, devstack.Row{
						Status: status, LastResult: last, LastEpoch: epoch, Created: created, Modified: max(modified, 1),
					})
				}
			}
		}
	}
	return rows
}

// wanted says of a row what the rules say, in Go instead of SQL.
func wanted(r devstack.Row) (head, due bool, c herald.Candidate) {
	c = herald.Candidate{
		ID: uint64(r.ID), PHID: r.PHID, HookPHID: r.HookPHID, Modified: r.Modified,
		Expired: r.Modified+lease <= now,
	}
	if r.Status != "queued" {
		return false, false, c
	}
	switch r.LastResult {
	case "none":
		c.Claimed = r.Modified != r.Created
		return true, false, c
	case "fail":
		c.Retry, c.Claimed = true, r.Modified > r.LastEpoch+2
		ahead := r.LastEpoch - now
		return false, r.LastEpoch+backoff <= now || (ahead >= 3 && ahead <= 86400), c
	}
	return false, false, c
}

func TestCandidatesInEveryState(t *testing.T) {
	f := newFixture(t)
	var rows []devstack.Row
	for _, r := range spread() {
		rows = append(rows, f.insert(r))
	}
	// Another hook's rows in the same states are none of this one's.
	other := f.newHook("other")
	f.insert(devstack.Row{HookPHID: other.PHID})
	f.insert(devstack.Row{HookPHID: other.PHID, LastResult: "fail", LastEpoch: 5})

	slices.SortStableFunc(rows, func(a, b devstack.Row) int {
		return cmp.Or(cmp.Compare(a.LastEpoch, b.LastEpoch), cmp.Compare(a.ID, b.ID))
	})
	var heads, dues []herald.Candidate
	for _, r := range rows {
		head, due, c := wanted(r)
		if head {
			heads = append(heads, c)
		}
		if due {
			dues = append(dues, c)
		}
	}
	d := f.at(now)
	got, err := d.Heads(t.Context(), f.hook.PHID, 10_000)
	f.must(err)
	compare(t, "heads", got, heads)
	got, err = d.Due(t.Context(), f.hook.PHID, 10_000)
	f.must(err)
	compare(t, "due", got, dues)
	// A limit takes from the front.
	got, err = d.Heads(t.Context(), f.hook.PHID, 3)
	f.must(err)
	compare(t, "first heads", got, heads[:3])
	got, err = d.Due(t.Context(), f.hook.PHID, 3)
	f.must(err)
	compare(t, "first due", got, dues[:3])
}

func compare(t *testing.T, what string, got, want []herald.Candidate) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%s: %d candidates, want %d (and some)", what, len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s, %d: %+v\nwant %+v", what, i, got[i], want[i])
		}
	}
}

// What Go says about a claim on a row and what SQL says must be one rule.
func TestClaimedIsTheSameInGoAndSQL(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	for _, r := range spread() {
		if r.Status != "queued" {
			continue
		}
		stored := f.insert(r)
		head, due, c := wanted(stored)
		if !head && !due {
			continue
		}
		s, err := d.Load(t.Context(), uint64(stored.ID))
		f.must(err)
		if s.Request.Claimed() != c.Claimed {
			t.Errorf("%+v: Go says %v, SQL says %v", stored, s.Request.Claimed(), c.Claimed)
		}
	}
}

func TestUnchangedSeesTheNextResult(t *testing.T) {
	f := newFixture(t)
	for _, tt := range []struct {
		name  string
		row   devstack.Row
		retry bool
		want  bool
	}{
		{"never tried", devstack.Row{}, false, true},
		{"claimed", devstack.Row{Modified: now + 1}, false, true},
		{"delivered", devstack.Row{Status: "sent", LastResult: "okay", LastEpoch: now}, false, false},
		{"failed and queued again", devstack.Row{LastResult: "fail", LastEpoch: now}, false, false},
		{"still due", devstack.Row{LastResult: "fail", LastEpoch: now - backoff}, true, true},
		{"failed again", devstack.Row{LastResult: "fail", LastEpoch: now - backoff + 1}, true, false},
		{"failed for good", devstack.Row{Status: "failed", LastResult: "fail", LastEpoch: now}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := f.insert(tt.row)
			got, err := f.at(now).Unchanged(t.Context(), herald.Candidate{ID: uint64(r.ID), Retry: tt.retry})
			if err != nil || got != tt.want {
				t.Errorf("unchanged %v, %v, want %v", got, err, tt.want)
			}
		})
	}
	gone, err := f.at(now).Unchanged(t.Context(), herald.Candidate{ID: 4_000_000_000})
	if err != nil || gone {
		t.Errorf("a row that is gone: unchanged %v, %v", gone, err)
	}
}

func TestSinceReadsOnInOrder(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	if id, err := d.Newest(t.Context()); err != nil || id != 0 {
		t.Errorf("newest of nothing: %d, %v", id, err)
	}
	other := f.newHook("other")
	var ids []uint64
	for i := range 7 {
		r := devstack.Row{Status: []string{"queued", "sent"}[i%2]}
		if i == 3 {
			r.HookPHID = other.PHID
		}
		ids = append(ids, uint64(f.insert(r).ID))
	}
	newest, err := d.Newest(t.Context())
	f.must(err)
	if newest != ids[6] {
		t.Errorf("newest %d, want %d", newest, ids[6])
	}
	var seen []uint64
	for watermark := uint64(0); ; {
		part, err := d.Since(t.Context(), watermark, 3)
		f.must(err)
		if len(part) == 0 {
			break
		}
		for _, a := range part {
			seen = append(seen, a.ID)
			if want := map[bool]string{true: other.PHID, false: f.hook.PHID}[a.ID == ids[3]]; a.HookPHID != want {
				t.Errorf("row %d arrived for %s, want %s", a.ID, a.HookPHID, want)
			}
		}
		watermark = part[len(part)-1].ID
	}
	if !slices.Equal(seen, ids) {
		t.Errorf("arrived %v, want %v", seen, ids)
	}
	waiting, err := d.Waiting(t.Context())
	f.must(err)
	slices.Sort(waiting)
	want := []string{f.hook.PHID, other.PHID}
	if slices.Sort(want); !slices.Equal(waiting, want) {
		t.Errorf("waiting %v, want %v", waiting, want)
	}
}

// Every status with every result: strange is what no rule will send or end.
func TestSinceKnowsStrangeRows(t *testing.T) {
	f := newFixture(t)
	want := map[uint64]bool{}
	for _, status := range []string{"queued", "sent", "failed", "QUEUED", "zzz"} {
		for _, result := range []string{"none", "okay", "fail", "zzz"} {
			known := status == "sent" || status == "failed" || status == "queued" && (result == "none" || result == "fail")
			want[uint64(f.insert(devstack.Row{Status: status, LastResult: result}).ID)] = !known
		}
	}
	day := int64(24 * 60 * 60)
	failed := devstack.Row{Status: "queued", LastResult: "fail"}
	failed.LastEpoch = now + day
	want[uint64(f.insert(failed).ID)] = false
	failed.LastEpoch = now + day + 1
	want[uint64(f.insert(failed).ID)] = true
	rows, err := f.at(now).Since(t.Context(), 0, 100)
	f.must(err)
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	for _, a := range rows {
		if a.Strange != want[a.ID] || a.PHID == "" {
			t.Errorf("row %d: %+v, want strange %v", a.ID, a, want[a.ID])
		}
	}
}
