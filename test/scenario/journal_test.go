package scenario_test

import (
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
	"waybill/test/scenario"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

// A claim reads its version from the answer to its own UPDATE. The journal must
// leave that alone: a trigger that inserts would not.
func TestAJournalLeavesClaimsAlone(t *testing.T) {
	p := stacktest.Phorge(t, "")
	j := scenario.NewJournal(t, p, time.Now)
	r, err := p.Insert(t.Context(), devstack.Row{HookPHID: "h", ObjectPHID: "o", Properties: "{}"})
	if err != nil {
		t.Fatal(err)
	}
	table := p.Database("herald") + ".herald_webhookrequest"
	res, err := p.DB.ExecContext(t.Context(), "UPDATE "+table+
		" SET dateModified = LAST_INSERT_ID(GREATEST(dateModified + 1, UNIX_TIMESTAMP())) WHERE id = ?", r.ID)
	if err != nil {
		t.Fatal(err)
	}
	version, err := res.LastInsertId()
	after, _ := p.Row(t.Context(), r.PHID)
	if err != nil || version != after.Modified || version <= r.Modified {
		t.Errorf("the claim's version is %d, %v; the row's %d, before %d", version, err, after.Modified, r.Modified)
	}
	for _, set := range []string{"status = 'queued', lastRequestResult = 'fail'", "lastRequestEpoch = 5", "status = 'sent'", "status = 'failed'"} {
		if _, err := p.DB.ExecContext(t.Context(), "UPDATE "+table+" SET "+set+" WHERE id = ?", r.ID); err != nil {
			t.Fatal(err)
		}
	}
	want := []scenario.Write{
		{Before: "queued", After: "queued"}, {Before: "queued", After: "queued", Result: true},
		{Before: "queued", After: "queued", Result: true}, {Before: "queued", After: "sent", Result: true},
		{Before: "sent", After: "failed", Result: true},
	}
	got := j.Writes(t)
	if len(got) != len(want) {
		t.Fatalf("%d writes %+v", len(got), got)
	}
	for i, w := range want {
		w.Row, w.At = r.PHID, got[i].At
		if got[i] != w || w.At.Unix() < r.Created {
			t.Errorf("write %d is %+v, want %+v", i, got[i], w)
		}
	}
}
