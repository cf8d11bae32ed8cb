package heralddb_test

import (
	"errors"
	"slices"
	"testing"

	"waybill/internal/devstack"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

// stateOf says of a row what the states' words say, in Go instead of SQL.
func stateOf(r devstack.Row) heralddb.State {
	claimed := r.Modified != r.Created
	if r.LastResult == "fail" {
		claimed = r.Modified > r.LastEpoch+2
	}
	switch {
	case r.Status == "sent":
		return heralddb.StateSent
	case r.Status == "failed":
		return heralddb.StateFailed
	case r.Status != "queued" || (r.LastResult != "none" && r.LastResult != "fail"):
		return heralddb.StateUnknown
	case claimed && r.Modified+lease > now:
		return heralddb.StateClaimed
	case r.LastResult == "none":
		return heralddb.StateQueued
	case r.LastEpoch+backoff > now:
		return heralddb.StateResting
	}
	return heralddb.StateDue
}

// Every row is in one state, whichever way it is asked for.
func TestEveryRowHasItsState(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	want := map[heralddb.State][]uint64{}
	for _, r := range spread() {
		stored := f.insert(r)
		state := stateOf(stored)
		want[state] = append([]uint64{uint64(stored.ID)}, want[state]...)
		if one, err := d.Request(t.Context(), stored.PHID, 0); err != nil || one.State != state || one.Now != now {
			t.Errorf("%+v is %q, %v, want %q", stored, one.State, err, state)
		}
	}
	for _, state := range heralddb.States() {
		if len(want[state]) == 0 {
			t.Fatalf("no row is %s", state)
		}
		for _, hook := range []string{"", f.hook.PHID} {
			got, err := d.Requests(t.Context(), heralddb.Filter{HookPHID: hook, States: []heralddb.State{state}, Limit: 10_000})
			f.must(err)
			if !slices.Equal(listedIDs(got), want[state]) {
				t.Errorf("%s of %q: rows %v, want %v", state, hook, listedIDs(got), want[state])
			}
		}
	}
}

func listedIDs(listed []heralddb.Listed) (ids []uint64) {
	for _, l := range listed {
		ids = append(ids, l.ID)
	}
	return ids
}

func TestRequestsAreListedNewestFirst(t *testing.T) {
	f := newFixture(t)
	other := f.newHook("other")
	first, theirs, last := f.insert(devstack.Row{}), f.insert(devstack.Row{HookPHID: other.PHID}), f.insert(devstack.Row{Status: "sent"})
	d := f.at(now)
	for _, tt := range []struct {
		name   string
		filter heralddb.Filter
		want   []uint64
	}{
		{"all", heralddb.Filter{Limit: 9}, []uint64{uint64(last.ID), uint64(theirs.ID), uint64(first.ID)}},
		{"as many as asked for", heralddb.Filter{Limit: 1}, []uint64{uint64(last.ID)}},
		{"one hook's", heralddb.Filter{HookPHID: f.hook.PHID, Limit: 9}, []uint64{uint64(last.ID), uint64(first.ID)}},
		{"two states", heralddb.Filter{HookPHID: other.PHID, States: []heralddb.State{heralddb.StateSent, heralddb.StateQueued}, Limit: 9}, []uint64{uint64(theirs.ID)}},
		{"none", heralddb.Filter{HookPHID: "PHID-HWBH-none", Limit: 9}, nil},
	} {
		got, err := d.Requests(t.Context(), tt.filter)
		if err != nil || !slices.Equal(listedIDs(got), tt.want) {
			t.Errorf("%s: %v, %v, want %v", tt.name, listedIDs(got), err, tt.want)
		}
	}
	if recent, err := d.Recent(t.Context(), 2); err != nil || !slices.Equal(recent, []string{last.PHID, theirs.PHID}) {
		t.Errorf("recent %q, %v", recent, err)
	}
	if one, err := d.Request(t.Context(), "", uint64(theirs.ID)); err != nil || one.PHID != theirs.PHID || one.HookPHID != other.PHID {
		t.Errorf("by id: %+v, %v", one, err)
	}
	if _, err := d.Request(t.Context(), "PHID-HWBR-none", 0); !errors.Is(err, herald.ErrGone) {
		t.Errorf("a row that is none: %v", err)
	}
}

// A hook's line in a list comes from its rows alone, and rows whose hook is gone
// are not left out.
func TestStandingsOfHooks(t *testing.T) {
	f := newFixture(t)
	idle := f.newHook("idle")
	for i := range int64(threshold) {
		f.insert(devstack.Row{Status: "failed", LastResult: "fail", LastEpoch: now - 100 + i, Properties: `{"n":"older"}`})
	}
	f.insert(devstack.Row{LastResult: "fail", LastEpoch: now - 5, Properties: `{"n":"newest"}`, Created: now - 900, Modified: now - 4})
	f.insert(devstack.Row{Status: "sent", LastResult: "okay", LastEpoch: now - 50})
	f.insert(devstack.Row{Status: "sent", LastResult: "okay", LastEpoch: now - 60})
	f.insert(devstack.Row{Created: now - 7, Modified: now - 3})                          // claimed
	f.insert(devstack.Row{Created: now - 70, Modified: now - lease})                     // was claimed
	f.insert(devstack.Row{LastResult: "fail", LastEpoch: now - 9, Modified: now})        // claimed again
	f.insert(devstack.Row{HookPHID: "PHID-HWBH-gone", Created: now - 11})                // nobody's
	f.insert(devstack.Row{HookPHID: "PHID-HWBH-gone-too", Status: "sent", Created: now}) // over
	got, err := f.at(now).Standings(t.Context())
	f.must(err)
	if len(got) != 3 {
		t.Fatalf("%d hooks: %+v", len(got), got)
	}
	busy := got[0]
	if busy.PHID != f.hook.PHID || busy.Queued != 4 || busy.InFlight != 2 || busy.Oldest != now-900 || busy.Now != now {
		t.Errorf("queue %+v", busy)
	}
	// Twelve failures: the tenth from the newest is the third of the first ten.
	if busy.Okay != now-50 || busy.Fail != now-5 || string(busy.Failure) != `{"n":"newest"}` || busy.ThresholdFailure != now-98 {
		t.Errorf("results %+v %s", busy, busy.Failure)
	}
	if i := got[1]; i.PHID != idle.PHID || i.Name != "idle" || i.Queued+i.Oldest+i.Okay+i.Fail+i.ThresholdFailure != 0 || i.Gone {
		t.Errorf("idle %+v", i)
	}
	if g := got[2]; g.PHID != "PHID-HWBH-gone" || !g.Gone || g.Queued != 1 || g.Oldest != now-11 {
		t.Errorf("gone %+v", g)
	}
}
