package acceptance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
	"waybill/test/scenario"
)

// The database goes away in the very moment of a result's write, for longer
// than the lease: before the write took effect, or after it did and before
// Waybill heard so. The result is written when it is back, and nothing is sent
// again. Temporal is there and keeps the result meanwhile.
func TestAResultOutlivesTheDatabasesAbsence(t *testing.T) {
	t.Parallel()
	for part, written := range map[scenario.Part]string{scenario.Question: "queued", scenario.Answer: "sent"} {
		t.Run("at the "+string(part), func(t *testing.T) {
			t.Parallel()
			awayAt(t, part, written)
		})
	}
}

func awayAt(t *testing.T, part scenario.Part, meanwhile string) {
	site, receiver := scenario.NewSite(t, &program), scenario.NewReceiver(t, nil, time.Now)
	cables := site.NewCables(t)
	serve := site.Serve(t, site.Through(t, cables, shortLease()))
	h, object := hook(t, site, receiver.URL("status200", "away")), task(t, site)
	held := cables.MariaDB.Hold(part, resultStatement)
	r := queue(t, site, h, object, forever)
	held.Await(t)
	cables.MariaDB.Gone()
	scenario.Never(t, leaseOfShort+2*time.Second, "a change or a second POST while the database is away", func() bool {
		return row(t, site, r.PHID).Status != meanwhile || len(receiver.Case("away")) > 1
	})
	cables.MariaDB.Accept()
	sent := await(t, site, r.PHID, "sent", "okay")
	if ended(sent) != httpError("200") || sent.LastEpoch == 0 {
		t.Errorf("the row says %s, lastRequestEpoch %d", ended(sent), sent.LastEpoch)
	}
	scenario.Until(t, patience, "the delivery ends", func() bool { return site.Closed(t, "request/"+r.PHID) })
	if got := outcome(t, site, r); got != "delivered" {
		t.Errorf("the workflow's outcome is %q", got)
	}
	await(t, site, queue(t, site, h, object, never).PHID, "sent", "okay")
	if n := len(receiver.Case("away")); n != 2 {
		t.Errorf("%d POSTs for two rows", n)
	}
	lines := serve.Log.Await(t, patience, 1, "attempt", r.PHID)
	if len(lines) != 1 || lines[0].Text("state") != "unwritten" || lines[0].Text("write_error") == "" {
		t.Errorf("the log says %v of the attempt", lines)
	}
	if code := serve.Stop(t); code != 0 {
		t.Errorf("the stop ended with %d", code)
	}
}

// The database goes away at a result's write, and then the process that knows
// the result dies. Temporal has it by then: the next process writes it, and
// sends nothing.
func TestAResultOutlivesItsProcessToo(t *testing.T) {
	t.Parallel()
	site, receiver := scenario.NewSite(t, &program), scenario.NewReceiver(t, nil, time.Now)
	cables := site.NewCables(t)
	serve := site.Serve(t, site.Through(t, cables, shortLease()))
	h, object := hook(t, site, receiver.URL("status200", "heir")), task(t, site)
	held := cables.MariaDB.Hold(scenario.Question, resultStatement)
	r := queue(t, site, h, object, forever)
	held.Await(t)
	cables.MariaDB.Gone()
	scenario.Until(t, patience, "Temporal has the result", func() bool {
		for id, history := range site.Histories(t) {
			if strings.HasPrefix(id, "request/"+r.PHID) && strings.Contains(history, `"WriteBack"`) {
				return true
			}
		}
		return false
	})
	serve.Kill()
	if got := row(t, site, r.PHID); got.Status != "queued" {
		t.Fatalf("the row is %s already", got.Status)
	}
	heir := site.Serve(t, shortLease())
	if sent := await(t, site, r.PHID, "sent", "okay"); ended(sent) != httpError("200") {
		t.Errorf("the row says %s", ended(sent))
	}
	await(t, site, queue(t, site, h, object, never).PHID, "sent", "okay")
	if n := len(receiver.Case("heir")); n != 2 || len(heir.Log.Find("attempt", r.PHID)) > 0 {
		t.Errorf("%d POSTs for two rows", n)
	}
}

// outcome is how a request's workflow ended.
func outcome(t *testing.T, s *scenario.Site, r devstack.Row) string {
	t.Helper()
	var result struct{ Outcome string }
	if err := s.Temporal.GetWorkflow(t.Context(), "request/"+r.PHID, "").Get(t.Context(), &result); err != nil {
		t.Error(err)
	}
	return result.Outcome
}

// Temporal dies, or dies and loses everything, while POSTs are under way: their
// results are written all the same and are not sent again when it is back. One
// receiver has been fast (its calls are made inside a workflow task), one is
// unknown (its call is a task of its own).
func TestTemporalMayDieDuringAPOST(t *testing.T) {
	t.Parallel()
	for _, wiped := range []bool{false, true} {
		t.Run(fmt.Sprint("wiped ", wiped), func(t *testing.T) {
			t.Parallel()
			temporalDies(t, wiped)
		})
	}
}

func temporalDies(t *testing.T, wiped bool) {
	on := ownServers(t)
	site := scenario.NewSiteOn(t, &program, scenario.Servers{MariaDB: stacktest.MariaDB(t), Temporal: on.Temporal})
	settings := shortLease()
	settings["WAYBILL_HERALD_DELIVERY_TIMEOUT"] = "10s"
	serve, object := site.Serve(t, settings), task(t, site)
	fast, unknown := scenario.NewGate(t), scenario.NewGate(t)
	fast.Open(200)
	gates := map[*scenario.Gate]devstack.Hook{fast: hook(t, site, fast.URL()), unknown: hook(t, site, unknown.URL())}
	for range 2 {
		await(t, site, queue(t, site, gates[fast], object, never).PHID, "sent", "okay")
	}
	fast.Hold()
	rows := map[*scenario.Gate]devstack.Row{}
	for g, h := range gates {
		rows[g] = queue(t, site, h, object, forever)
		g.AwaitCall(t)
	}
	on.Temporal.Kill()
	sent := map[*scenario.Gate]devstack.Row{}
	for g, r := range rows {
		g.Answer(t, 200)
		sent[g] = await(t, site, r.PHID, "sent", "okay")
		g.Open(200)
	}
	if wiped {
		if err := on.Temporal.Wipe(); err != nil {
			t.Fatal(err)
		}
	}
	restartTemporal(t, on)
	if wiped {
		site.RegisterNamespace(t)
	}
	for _, h := range gates { // behind them: whatever is left of the rows' deliveries has had its turn
		await(t, site, queue(t, site, h, object, forever).PHID, "sent", "okay")
	}
	for g, r := range rows {
		if got := row(t, site, r.PHID); got != sent[g] {
			t.Errorf("the row changed again:\n got %+v\nwant %+v", got, sent[g])
		}
	}
	if f, u := fast.Calls(), unknown.Calls(); f != 4 || u != 2 {
		t.Errorf("%d calls for four rows, %d for two", f, u)
	}
	if code := serve.Stop(t); code != 0 {
		t.Errorf("the stop ended with %d", code)
	}
}
