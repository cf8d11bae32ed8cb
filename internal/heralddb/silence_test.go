package heralddb_test

import (
	"slices"
	"testing"

	"waybill/internal/devstack"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

// silentWords are properties as Phorge leaves them when the site is silent.
const silentWords = `{"retry":"forever","silent":false,"errorType":"hook","errorCode":"silent"}`

// silent is a row that Phorge failed at a moment.
func (f *fixture) silent(modified int64) devstack.Row {
	f.Helper()
	return f.insert(devstack.Row{Status: "failed", Properties: silentWords, Created: now - 86400, Modified: modified})
}

func (f *fixture) silenced(d *heralddb.DB) (phids []string) {
	f.Helper()
	rows, err := d.Silenced(f.Context())
	f.must(err)
	for _, r := range rows {
		if r.HookPHID != f.hook.PHID || r.ID == 0 || r.Modified == 0 {
			f.Errorf("an incomplete row %+v", r)
		}
		phids = append(phids, r.PHID)
	}
	return phids
}

func TestSilenceCountsForTenMinutesOfTheDatabasesClock(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	f.silent(now - 601)
	want := []string{f.silent(now - 600).PHID, f.silent(now).PHID, f.silent(now + 3600).PHID, f.silent(maxUint32).PHID}
	if got := f.silenced(d); !slices.Equal(got, want) {
		t.Errorf("silenced %v, want %v", got, want)
	}
}

// After the first looks a row that was there all the time is read by every
// sixtieth only, one that came within the last sixty by all of them.
func TestLooksForSilenceReadWhatIsNewAndAllOfItNowAndThen(t *testing.T) {
	const whole = 60
	f := newFixture(t)
	d := f.at(now)
	old := f.insert(devstack.Row{Properties: silentWords})
	for range whole {
		f.silenced(d)
	}
	fail := func(r devstack.Row) {
		f.Helper()
		f.exec("UPDATE "+f.table()+" SET status = 'failed', dateModified = ? WHERE id = ?", now, r.ID)
	}
	young := f.insert(devstack.Row{Properties: silentWords})
	fail(old)
	fail(young)
	seen := map[string]int{}
	for range whole + 1 {
		for _, phid := range f.silenced(d) {
			seen[phid]++
		}
	}
	if seen[old.PHID] != 1 || seen[young.PHID] != whole+1 {
		t.Errorf("in %d looks the old row was seen %d times, the young one %d times", whole+1, seen[old.PHID], seen[young.PHID])
	}
}

func TestOtherFailuresAreNoSilence(t *testing.T) {
	f := newFixture(t)
	for _, r := range []devstack.Row{
		{Properties: silentWords},
		{Status: "sent", Properties: silentWords},
		{Status: "failed", LastResult: "fail", Properties: silentWords},
		{Status: "failed", LastEpoch: now, Properties: silentWords},
		{Status: "failed", Properties: `{"silent":true,"errorType":"hook","errorCode":"disabled"}`},
		{Status: "failed", Properties: `{"errorCode":"x","y":"silent"}`},
		{Status: "failed", Properties: `"errorCode":"silent"`},
	} {
		f.insert(r)
	}
	if got := f.silenced(f.at(now)); len(got) != 0 {
		t.Errorf("silenced %v", got)
	}
}

// The look is at the end of the table: its cost must not grow with the table.
func TestSilenceIsLookedForAmongTheNewestRows(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	old, recent := f.silent(now), f.silent(now)
	f.renumber(f.insert(devstack.Row{}), 1_000_000)
	f.renumber(old, 995_000)
	f.renumber(recent, 995_001)
	if got := f.silenced(d); !slices.Equal(got, []string{recent.PHID}) {
		t.Errorf("silenced %v, want only %s", got, recent.PHID)
	}
}

func TestEndingsSayHowRowsStand(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	sent := f.insert(devstack.Row{Status: "sent", LastResult: "okay", Properties: `{"errorType":"http","errorCode":200}`})
	odd := f.insert(devstack.Row{Properties: `no JSON`})
	f.insert(devstack.Row{})
	got, err := d.Endings(t.Context(), []uint64{uint64(sent.ID), uint64(odd.ID), 4711})
	f.must(err)
	want := map[uint64]herald.Ending{
		uint64(sent.ID): {Status: "sent", Result: "okay", ErrorType: "http", ErrorCode: "200"},
		uint64(odd.ID):  {Status: "queued", Result: "none"},
	}
	if len(got) != len(want) || got[uint64(sent.ID)] != want[uint64(sent.ID)] || got[uint64(odd.ID)] != want[uint64(odd.ID)] {
		t.Errorf("endings %v, want %v", got, want)
	}
	if none, err := d.Endings(t.Context(), nil); err != nil || len(none) != 0 {
		t.Errorf("no ids: %v, %v", none, err)
	}
}
