package acceptance

import (
	"fmt"
	"testing"
	"time"

	"waybill/internal/devstack/stacktest"
	"waybill/test/scenario"
)

// Installations that share a Temporal namespace do each their own work: calls
// come from, and pauses go to, the database that they concern.
func TestInstallationsInOneNamespaceDoNotMeet(t *testing.T) {
	t.Parallel()
	one, two := scenario.NewSite(t, &program), scenario.NewSite(t, &program)
	two.Temporal, two.TemporalNamespace = one.Temporal, one.TemporalNamespace
	receiver := scenario.NewReceiver(t, nil, time.Now)
	for i, site := range []*scenario.Site{one, two} {
		name := []string{"one", "two"}[i]
		site.Serve(t, map[string]string{"WAYBILL_HERALD_RETRY_BACKOFF": "3s"})
		object := task(t, site)
		// Retries take the way over the shared queue.
		h := hook(t, site, receiver.URL("status500", name))
		for range 5 {
			queue(t, site, h, object, forever)
		}
		awaitWorkflow(t, site, h.PHID)
		tell(t, site, h.PHID, "pause", `"maintenance"`)
		awaitPause(t, site, h.PHID)
		tell(t, site, h.PHID, "resume", "")
		receiver.Await(t, name, 15, 2*patience)
	}
	for i, site := range []*scenario.Site{one, two} {
		db := stacktest.Open(t, site.MariaDB, site.Ledger)
		var pauses int
		var err error
		// The hook's workflow clears the pause in its own time.
		scenario.Until(t, patience, func() string { return fmt.Sprintf("no pause left of installation %d: %d, %v", i+1, pauses, err) },
			func() bool {
				err = db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM hook_pause").Scan(&pauses)
				return err == nil && pauses == 0
			})
	}
}

// Waybill's own database may be lost: what sleeps in Temporal wakes up again.
func TestLosingWaybillsDatabaseStrandsNothing(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	h := l.hook(t, "status500", "stranded")
	r := queue(t, l.Site, h, l.object, forever)
	scenario.Until(t, patience, "the row rests", func() bool { return row(t, l.Site, r.PHID).LastResult == "fail" })
	if code := l.serve.Stop(t); code != 0 {
		t.Fatalf("the stop ended with %d", code)
	}
	db := stacktest.Open(t, l.MariaDB, "")
	if _, err := db.ExecContext(t.Context(), "DROP DATABASE `"+l.Ledger+"`"); err != nil {
		t.Fatal(err)
	}
	if err := l.SetHookURI(t.Context(), h.PHID, l.receiver.URL("status200", "stranded")); err != nil {
		t.Fatal(err)
	}
	l.Serve(t, map[string]string{"WAYBILL_HERALD_RETRY_BACKOFF": backoff.String()})
	await(t, l.Site, r.PHID, "sent", "okay")
	scenario.Until(t, patience, "the request's workflow ends", func() bool { return l.Closed(t, "request/"+r.PHID) })
}
