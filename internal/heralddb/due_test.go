package heralddb_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"waybill/internal/devstack"
)

// failed is a row that waits for a retry since its call at an epoch.
func (f *fixture) failed(epoch int64) devstack.Row {
	f.Helper()
	return f.insert(devstack.Row{LastResult: "fail", LastEpoch: epoch, Created: epoch, Modified: epoch})
}

// Between two looks at all failed rows only those are read that were called
// later than the last whole look allowed, or are among what it found.
func TestDueFindsRetriesAtOnceAndDatedBackOnesLater(t *testing.T) {
	f := newFixture(t)
	clock := time.Unix(0, 0)
	c := f.config(f.dsn(fmt.Sprintf("timestamp=%d", now)))
	c.Clock = func() time.Time { return clock }
	d := f.open(c)
	want := func(what string, rows ...devstack.Row) {
		t.Helper()
		var ids, wanted []uint64
		for _, r := range rows {
			wanted = append(wanted, uint64(r.ID))
		}
		due, err := d.Due(t.Context(), f.hook.PHID, 10)
		f.must(err)
		for _, r := range due {
			ids = append(ids, r.ID)
		}
		if !slices.Equal(ids, wanted) {
			t.Errorf("%s: due %v, want %v", what, ids, wanted)
		}
	}
	want("nothing failed")
	back := f.failed(now - backoff)
	want("dated back")
	clock = clock.Add(time.Minute)
	want("the whole look", back)
	later := f.failed(now - backoff)
	older := f.failed(now - 2*backoff)
	want("as old as what was found, and older", back, later)
	clock = clock.Add(time.Minute)
	want("the next whole look", older, back, later)
}

// A row that rests at the whole look is found as soon as it is due.
func TestDueFindsWhatComesDueBetweenWholeLooks(t *testing.T) {
	f := newFixture(t)
	c := f.config(f.dsn(""))
	c.Backoff = 4 * time.Second
	c.Clock = func() time.Time { return time.Unix(0, 0) } // no second whole look
	d := f.open(c)
	look := func() []uint64 {
		due, err := d.Due(t.Context(), f.hook.PHID, 10)
		f.must(err)
		var ids []uint64
		for _, r := range due {
			ids = append(ids, r.ID)
		}
		return ids
	}
	// Its call is stamped by the server, as results are. It has 3 s to rest, so that
	// the first look comes in time also on a busy machine.
	r := f.insert(devstack.Row{LastResult: "fail", LastEpoch: 1, Created: now})
	f.exec("UPDATE " + f.table() + " SET lastRequestEpoch = UNIX_TIMESTAMP() - 1")
	if ids := look(); len(ids) != 0 {
		t.Fatalf("due at once: %v", ids)
	}
	eventually(t, "the row is due", func() bool { return slices.Equal(look(), []uint64{uint64(r.ID)}) })
}

func TestHookPHIDsFollowTheTable(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	want := func(phids ...string) {
		t.Helper()
		got, err := d.HookPHIDs(t.Context())
		f.must(err)
		if !slices.Equal(got, phids) {
			t.Errorf("hooks %v, want %v", got, phids)
		}
		clear(got) // the caller's own
	}
	for range 3 {
		want(f.hook.PHID)
	}
	second := f.newHook("second")
	want(f.hook.PHID, second.PHID)
	f.exec("DELETE FROM `"+f.phorge.Database("herald")+"`.herald_webhook WHERE phid = ?", second.PHID)
	third := f.newHook("third")
	want(f.hook.PHID, third.PHID)
	f.exec("UPDATE `"+f.phorge.Database("herald")+"`.herald_webhook SET phid = 'PHID-HWBH-renamed' WHERE phid = ?", third.PHID)
	want(f.hook.PHID, "PHID-HWBH-renamed")
}
