package acceptance

import (
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// failedByPhorge plays Phorge's worker on a row that it fails by its own rules:
// it finds the row queued and saves its failure by id, with what it had read,
// without the lock and whatever has happened since. between is that while.
func failedByPhorge(t *testing.T, s *scenario.Site, phid, code string, between func()) {
	t.Helper()
	found := row(t, s, phid)
	if found.Status != "queued" {
		t.Fatalf("Phorge's worker finds the row %s", found.Status)
	}
	if between != nil {
		between()
	}
	execSQL(t, s, "UPDATE "+s.Database("herald")+".herald_webhookrequest SET status = 'failed', lastRequestResult = 'none',"+
		" lastRequestEpoch = 0, properties = ?, dateModified = UNIX_TIMESTAMP() WHERE id = ?",
		strings.TrimSuffix(found.Properties, "}")+hookError(code), found.ID)
}

// silentHold is the line that tells of it.
const silentHold = "Phorge's site is silent"

// awaitHold waits until all hooks are held for silence, as an operator sees it.
func awaitHold(t *testing.T, s *scenario.Site, hookPHID string) {
	t.Helper()
	scenario.Until(t, patience, "the hook is shown as paused by waybill", func() bool {
		return strings.Contains(listed(t, s, hookPHID), "paused by waybill: Phorge's site is silent")
	})
}

// heldBack shows that rows of a hook are not called.
func heldBack(t *testing.T, l lane, name string, rows ...devstack.Row) {
	t.Helper()
	before := len(l.receiver.Case(name))
	scenario.Never(t, 2*time.Second, "a call although the site is silent", func() bool { return len(l.receiver.Case(name)) > before })
	for _, r := range rows {
		if got := row(t, l.Site, r.PHID); got != r {
			t.Errorf("a row that is held changed: %+v", got)
		}
	}
}

// One row that Phorge silences holds every hook in every process, also one
// that starts later; it is said once; a resume ends it although the row is as
// young as before; and a new row holds again.
func TestASilentSiteHoldsAllHooks(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	second := l.Serve(t, nil)
	polled, other := l.hook(t, "status200", "polled"), l.hook(t, "status200", "other")
	await(t, l.Site, queue(t, l.Site, other, l.object, never).PHID, "sent", "okay")
	awaitWorkflow(t, l.Site, polled.PHID)
	hooksCommand(t, l.Site, "pause", polled.PHID) // so that its rows wait for Phorge
	failedByPhorge(t, l.Site, queue(t, l.Site, polled, l.object, forever).PHID, "silent", nil)
	awaitHold(t, l.Site, other.PHID)
	waiting := queue(t, l.Site, other, l.object, never)
	heldBack(t, l, "other", waiting)
	second.Stop(t)
	third := l.Serve(t, nil)
	heldBack(t, l, "other", waiting)
	said := 0
	for _, p := range []*scenario.Process{l.serve, second, third} {
		said += len(p.Log.Find(silentHold))
	}
	if said != 1 {
		t.Errorf("the hold was said %d times in all logs, want once", said)
	}

	hooksCommand(t, l.Site, "resume", "--all")
	await(t, l.Site, waiting.PHID, "sent", "okay")
	scenario.Never(t, 2*time.Second, "a hold for what was known at the resume", func() bool {
		return strings.Contains(listed(t, l.Site, other.PHID), "paused")
	})
	failedByPhorge(t, l.Site, queue(t, l.Site, polled, l.object, forever).PHID, "silent", nil)
	awaitHold(t, l.Site, other.PHID)
	heldBack(t, l, "other", queue(t, l.Site, other, l.object, never))
}

// A start looks before it sends: what Phorge silenced ten minutes ago still
// holds; what is older does not, nor what was known at a resume.
func TestAStartOnASilentSiteSendsNothing(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	l.serve.Stop(t)
	h := l.hook(t, "status200", "start")
	silenced := func(age time.Duration) {
		insert(t, l.Site, devstack.Row{
			HookPHID: h.PHID, ObjectPHID: l.object, Status: "failed", Age: age,
			Properties: strings.TrimSuffix(never, "}") + hookError("silent"),
		})
	}
	silenced(11 * time.Minute)
	r := queue(t, l.Site, h, l.object, never)
	p := l.Serve(t, nil)
	await(t, l.Site, r.PHID, "sent", "okay")
	p.Stop(t)
	silenced(9 * time.Minute)
	held := queue(t, l.Site, h, l.object, never)
	p = l.Serve(t, nil)
	awaitHold(t, l.Site, h.PHID)
	heldBack(t, l, "start", held)
	hooksCommand(t, l.Site, "resume", "--all")
	await(t, l.Site, held.PHID, "sent", "okay")
	p.Stop(t)
	l.Serve(t, nil) // knows of the resume, whatever it finds
	await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "sent", "okay")
}

// An operator's own pause stands beside the silence and ends with the
// operator's resume, not a second later with a pause of Waybill's.
func TestAnOperatorsPauseStandsBesideSilence(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	h := l.hook(t, "status200", "own-pause")
	hooksCommand(t, l.Site, "pause", "--all", "--by", "ada", "--reason", "silence comes")
	r := queue(t, l.Site, h, l.object, forever)
	failedByPhorge(t, l.Site, r.PHID, "silent", nil)
	scenario.Until(t, patience, "the row is remembered", func() bool {
		var n int
		err := l.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+l.Ledger+".silence_evidence WHERE request_phid = ?", r.PHID).Scan(&n)
		return err == nil && n == 1
	})
	if line := listed(t, l.Site, h.PHID); !strings.Contains(line, "paused by ada: silence comes") {
		t.Errorf("shown: %s", line)
	}
	hooksCommand(t, l.Site, "resume", "--all")
	await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "sent", "okay")
	if n := len(l.serve.Log.Find(silentHold)); n != 0 {
		t.Error("a hold was reported that was the operator's")
	}
}

// A row too old to be looked for is evidence when a delivery comes across it:
// here Phorge silences it during the call. Its line says what stands instead.
func TestAnOldRowThatIsComeAcrossHoldsAllHooks(t *testing.T) {
	t.Parallel()
	l := newLane(t, map[string]string{"WAYBILL_HERALD_DELIVERY_TIMEOUT": "15s"})
	gate := scenario.NewGate(t)
	h, other := hook(t, l.Site, gate.URL()), l.hook(t, "status200", "across")
	r := queue(t, l.Site, h, l.object, forever)
	gate.AwaitCall(t)
	// Waybill's claim has moved the row; Phorge reads and saves it all the same.
	newest := insert(t, l.Site, devstack.Row{HookPHID: h.PHID, ObjectPHID: l.object, Status: "sent", LastResult: "okay", Properties: never})
	execSQL(t, l.Site, "UPDATE "+l.Database("herald")+".herald_webhookrequest SET id = id + 10000 WHERE id = ?", newest.ID)
	failedByPhorge(t, l.Site, r.PHID, "silent", nil)
	scenario.Never(t, 2*time.Second, "a hold for a row that no look reaches", func() bool { return len(l.serve.Log.Find(silentHold)) > 0 })
	gate.Answer(t, 200)
	awaitHold(t, l.Site, other.PHID)
	heldBack(t, l, "across", queue(t, l.Site, other, l.object, never))
	lines := l.serve.Log.Await(t, patience, 1, "attempt", r.PHID)
	if len(lines) != 1 || lines[0].Text("state") != "overtaken" || lines[0].Text("stands") != "failed/none hook silent" {
		t.Errorf("the attempt's lines: %v", lines)
	}
}
