package heralddb_test

import (
	"errors"
	"sync"
	"testing"

	"waybill/internal/devstack"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

func TestClaimMovesTheVersionForward(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	for _, tt := range []struct {
		name           string
		modified, want int64
	}{
		{"an old row takes the clock", now - 100, now},
		{"a row of a second ago takes the clock", now - 1, now},
		{"a row of this second goes one ahead", now, now + 1},
		{"a row from the future goes one ahead", now + 1000, now + 1001},
		{"a row at the end of the range still can", maxUint32 - 2, maxUint32 - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := f.insert(devstack.Row{Created: now - 100, Modified: tt.modified})
			c := f.claim(d, r)
			if got := f.row(r.PHID).Modified; c.Version != tt.want || got != tt.want || c.ID != uint64(r.ID) {
				t.Errorf("claim %+v, row's version %d, want %d", c, got, tt.want)
			}
		})
	}
}

// Two claimers that both saw the version: the row decides, and the winner's
// version is the one in the row, whatever happens between two statements.
func TestOneOfRacingClaimsWins(t *testing.T) {
	f := newFixture(t)
	const claimers, rows = 8, 25
	d := f.open(f.config(f.dsn("")))
	other := f.open(f.config(f.dsn("")))
	for range rows {
		r := f.insert(devstack.Row{})
		var wins sync.Map
		var group sync.WaitGroup
		for i := range claimers {
			group.Go(func() {
				from := []*heralddb.DB{d, other}[i%2]
				c, won, err := from.Claim(t.Context(), uint64(r.ID), r.Modified, herald.Lock{})
				if err != nil {
					t.Error(err)
				}
				if won {
					wins.Store(c.Version, i)
				}
			})
		}
		group.Wait()
		n := 0
		wins.Range(func(version, _ any) bool {
			n++
			if got := f.row(r.PHID).Modified; got != version.(int64) {
				t.Errorf("the winner was told version %d, the row says %d", version, got)
			}
			return true
		})
		if n != 1 {
			t.Errorf("%d claims won, want 1", n)
		}
	}
}

func TestClaimIsRefused(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	for _, status := range []string{"sent", "failed", "", "QUEUED", "odd"} {
		r := f.insert(devstack.Row{Created: now - 5})
		f.exec("UPDATE "+f.table()+" SET status = ? WHERE id = ?", status, r.ID)
		f.refused(d, r, r.Modified, herald.Lock{}, "status "+status)
	}
	r := f.insert(devstack.Row{Created: now - 5})
	f.refused(d, r, r.Modified-1, herald.Lock{}, "an older version")
	f.refused(d, r, r.Modified+1, herald.Lock{}, "a newer version")
	f.must(f.phorge.Collect(t.Context(), r.PHID))
	if _, won, err := d.Claim(t.Context(), uint64(r.ID), r.Modified, herald.Lock{}); won || err != nil {
		t.Errorf("claim of a collected row: %v, %v", won, err)
	}
}

// refused makes sure that a claim is not won and leaves the row alone.
func (f *fixture) refused(d *heralddb.DB, r devstack.Row, seen int64, lock herald.Lock, why string) {
	f.Helper()
	before := f.row(r.PHID)
	_, won, err := d.Claim(f.Context(), uint64(r.ID), seen, lock)
	if won || err != nil {
		f.Errorf("%s: won %v, error %v", why, won, err)
	}
	if after := f.row(r.PHID); after != before {
		f.Errorf("%s: the row changed from %+v to %+v", why, before, after)
	}
}

func TestClaimNeedsTheLockOfItsOwnSession(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	name := herald.LockName(f.phorge.Namespace, f.hook.PHID)
	mine, other := f.session(), f.session()
	lock := herald.Lock{Name: name, Connection: mine.Connection()}
	r := f.insert(devstack.Row{Created: now - 5})

	f.refused(d, r, r.Modified, lock, "nobody holds the lock")
	f.acquire(other, name)
	f.refused(d, r, r.Modified, lock, "another session holds it")
	f.must(other.Release(t.Context(), name))
	f.acquire(mine, herald.LockName(f.phorge.Namespace, "PHID-HWBH-other"))
	f.refused(d, r, r.Modified, lock, "the session holds another hook's lock")
	f.acquire(mine, name)
	if _, won, err := d.Claim(t.Context(), uint64(r.ID), r.Modified, lock); !won || err != nil {
		t.Errorf("with the lock held: won %v, %v", won, err)
	}
}

// A claim whose result could not be written any more must not be made.
func TestRowsAtTheEndOfTheRangeAreUnclaimable(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	for _, version := range []int64{maxUint32, maxUint32 - 1} {
		r := f.insert(devstack.Row{Modified: version})
		_, won, err := d.Claim(t.Context(), uint64(r.ID), version, herald.Lock{})
		if won || !errors.Is(err, herald.ErrUnclaimable) {
			t.Errorf("version %d: won %v, %v", version, won, err)
		}
		if f.row(r.PHID) != r {
			t.Errorf("version %d: the row changed", version)
		}
	}
	r := f.insert(devstack.Row{Modified: maxUint32 - 2})
	c := f.claim(d, r)
	w := result(t, c, herald.Decide(herald.Answer{HTTPStatus: 200}, true), r.Properties)
	if out := f.finish(d, w); out != herald.Written || f.row(r.PHID).Modified != maxUint32 {
		t.Errorf("the last possible result: %s, row %+v", out, f.row(r.PHID))
	}
	// A configuration failure is written without a claim and needs one step.
	r = f.insert(devstack.Row{Modified: maxUint32})
	w = result(t, herald.Claim{ID: uint64(r.ID), Version: maxUint32}, herald.HookFailure(herald.HookURI), r.Properties)
	if _, err := d.Finish(t.Context(), w); !errors.Is(err, herald.ErrUnclaimable) || f.row(r.PHID) != r {
		t.Errorf("beyond it: %v, row %+v", err, f.row(r.PHID))
	}
}

// MySQL raises an error when a subtraction of unsigned columns goes below zero.
func TestRowsFromTheFutureRaiseNothing(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	for _, far := range []int64{now + 1, now + 100_000_000, maxUint32 - 10} {
		for _, last := range []string{"none", "fail"} {
			r := f.insert(devstack.Row{Created: far, LastResult: last, LastEpoch: far})
			s, err := d.Load(t.Context(), uint64(r.ID))
			f.must(err)
			if s.Request.Created != far || s.Now != now {
				t.Errorf("loaded %+v", s.Request)
			}
			_, err = d.Unchanged(t.Context(), herald.Candidate{ID: uint64(r.ID), Retry: last == "fail"})
			f.must(err)
			c := f.claim(d, r)
			w := result(t, c, herald.Decide(herald.Answer{HTTPStatus: 503}, true), r.Properties)
			if out := f.finish(d, w); out != herald.Written {
				t.Errorf("result of a row from %d: %s", far, out)
			}
			f.insert(devstack.Row{Created: far, LastResult: last, LastEpoch: far})
		}
	}
	heads, err := d.Heads(t.Context(), f.hook.PHID, 100)
	f.must(err)
	due, err := d.Due(t.Context(), f.hook.PHID, 100)
	f.must(err)
	if len(heads) != 3 || len(due) != 0 {
		t.Errorf("%d heads and %d due, want 3 never tried and no retry of the future", len(heads), len(due))
	}
	for _, h := range heads {
		if h.Claimed || h.Expired {
			t.Errorf("a fresh row from the future counts as %+v", h)
		}
	}
	_, _, err = d.Queued(t.Context(), f.hook.PHID, 100)
	f.must(err)
	if _, age, err := d.Backlog(t.Context()); err != nil || age != 0 {
		t.Errorf("age of the future: %s, %v", age, err)
	}
}

// A trigger that inserts somewhere takes LAST_INSERT_ID's place in the answer. A
// claim whose version is not known must not be sent: its result could not be
// written, and the row would be sent again and again.
func TestAClaimWithoutItsVersionIsNone(t *testing.T) {
	f := newFixture(t)
	d := f.open(f.config(f.dsn("")))
	r := f.insert(devstack.Row{})
	f.exec("CREATE TABLE " + f.phorge.Database("herald") + ".seen (phid VARBINARY(64))")
	f.exec("CREATE TRIGGER " + f.phorge.Database("herald") + ".seen AFTER UPDATE ON " + f.table() +
		" FOR EACH ROW INSERT INTO seen VALUES (NEW.phid)")
	c, won, err := d.Claim(t.Context(), uint64(r.ID), r.Modified, herald.Lock{})
	if won || !errors.Is(err, herald.ErrNoVersion) {
		t.Errorf("claim %+v, won %v, %v", c, won, err)
	}
}
