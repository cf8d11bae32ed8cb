package heralddb_test

import (
	"slices"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/heralddb"
)

// ids are those of a hook's heads.
func (f *fixture) ids(d *heralddb.DB, limit int) (ids []uint64) {
	f.Helper()
	heads, err := d.Heads(f.Context(), f.hook.PHID, limit)
	f.must(err)
	for _, h := range heads {
		ids = append(ids, h.ID)
	}
	return ids
}

// renumber moves a row to another id, as an auto-increment that has jumped.
func (f *fixture) renumber(r devstack.Row, id uint64) {
	f.Helper()
	f.exec("UPDATE "+f.table()+" SET id = ? WHERE id = ?", id, r.ID)
}

// Between two looks at the whole line only its end is read; what that can miss
// is found by the next whole look.
func TestHeadsFindsNewRowsAtOnceAndOddOnesLater(t *testing.T) {
	f := newFixture(t)
	clock := time.Unix(0, 0)
	c := f.config(f.dsn(""))
	c.Clock = func() time.Time { return clock }
	d := f.open(c)
	want := func(what string, ids ...uint64) {
		t.Helper()
		if got := f.ids(d, 10); !slices.Equal(got, ids) {
			t.Errorf("%s: heads %v, want %v", what, got, ids)
		}
	}
	done := f.insert(devstack.Row{Status: "failed"})
	f.renumber(done, 1_000_000)
	want("nothing queued")

	next := f.insert(devstack.Row{})
	f.renumber(next, 1_000_001)
	want("a new row", 1_000_001)
	f.renumber(f.insert(devstack.Row{}), 999_000)
	want("a row that committed late", 999_000, 1_000_001)
	f.renumber(f.insert(devstack.Row{}), 500)
	odd := f.insert(devstack.Row{LastEpoch: 5})
	f.renumber(odd, 1_000_002)
	want("rows that no watermark can find", 999_000, 1_000_001)

	clock = clock.Add(time.Minute)
	want("the whole line", 500, 999_000, 1_000_001, 1_000_002)
	// The line begins at its first row now, however old that is.
	f.exec("UPDATE " + f.table() + " SET lastRequestEpoch = 0 WHERE id = 1000002")
	want("and between two looks", 500, 999_000, 1_000_001, 1_000_002)
	f.renumber(f.insert(devstack.Row{}), 600)
	want("behind its first row", 500, 600, 999_000, 1_000_001, 1_000_002)
}

func TestHeadsRemembersEachHookForItself(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	mine := f.insert(devstack.Row{})
	if got := f.ids(d, 10); !slices.Equal(got, []uint64{uint64(mine.ID)}) {
		t.Errorf("heads %v", got)
	}
	other := f.newHook("other")
	f.renumber(f.insert(devstack.Row{HookPHID: other.PHID}), 1_000_000)
	theirs, err := d.Heads(t.Context(), other.PHID, 10)
	if err != nil || len(theirs) != 1 || theirs[0].ID != 1_000_000 {
		t.Errorf("the other hook's heads %+v, %v", theirs, err)
	}
	second := f.insert(devstack.Row{})
	f.renumber(second, 2)
	if got := f.ids(d, 10); !slices.Equal(got, []uint64{uint64(mine.ID), 2}) {
		t.Errorf("heads %v", got)
	}
}
