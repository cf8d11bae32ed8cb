package acceptance

import (
	"fmt"
	"slices"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// mostSleepers is how many requests of a hook may rest in open workflows; in
// flight beside them are the one in the hook's slot and the one being fed.
const mostSleepers, inFlight = 100, 2

// openRequests counts the request workflows that are open, as visibility knows
// them: it may lag, and then counts such as have ended.
func openRequests(t testing.TB, s *scenario.Site) int {
	t.Helper()
	res, err := s.Temporal.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
		Query: "WorkflowType = 'Request' AND ExecutionStatus = 'Running'",
	})
	if err != nil {
		t.Fatal(err)
	}
	return int(res.GetCount())
}

// openAtOnce counts request workflows by what is true of each: those whose run
// is open in two looks at all were open together in between.
func openAtOnce(t testing.TB, s *scenario.Site) (n int) {
	t.Helper()
	before := openRuns(t, s)
	for id, run := range openRuns(t, s) {
		if before[id] == run {
			n++
		}
	}
	return n
}

// openRuns are the open runs of request workflows, by workflow id.
func openRuns(t testing.TB, s *scenario.Site) map[string]string {
	t.Helper()
	open := map[string]string{}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(s.Executions(t, "request/")))) {
		d, err := s.Temporal.DescribeWorkflow(t.Context(), id, "")
		if err != nil {
			t.Fatal(err)
		}
		if d.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			open[id] = d.WorkflowExecution.RunID
		}
	}
	return open
}

// A hook with many rows that always fail keeps at most a hundred workflows open
// for them. Every row is tried again and again all the same, and rows that can
// be delivered are, on this hook and on others.
func TestAHookOfFailuresKeepsAHundredWorkflowsOpen(t *testing.T) {
	// All of them rest at once, if they are let: a round takes less than the rest.
	const rows, rest = 150, "12s"
	l := newLane(t, map[string]string{"WAYBILL_HERALD_BREAKER_THRESHOLD": "1000000", "WAYBILL_HERALD_RETRY_BACKOFF": rest})
	bad := task(t, l.Site)
	to := newTally(t)
	to.RefuseOnly([]string{bad})
	h := hook(t, l.Site, to.URL("/refuses"))
	for range rows {
		queue(t, l.Site, h, bad, forever)
	}
	most := 0
	watch := func(done func() bool) func() bool {
		return func() bool {
			n := openRequests(t, l.Site)
			if n > mostSleepers+inFlight {
				n = openAtOnce(t, l.Site)
			}
			most = max(most, n)
			return done()
		}
	}
	scenario.Until(t, 2*patience, func() string { return fmt.Sprintf("a first try of all; still to come: %d", untried(t, l.Site, h, 1)) },
		watch(func() bool { return untried(t, l.Site, h, 1) == 0 }))
	first := newest(t, l.Site, h)
	good, other := queue(t, l.Site, h, l.object, forever), queue(t, l.Site, l.hook(t, "status200", "healthy"), l.object, never)
	await(t, l.Site, good.PHID, "sent", "okay")
	await(t, l.Site, other.PHID, "sent", "okay")
	scenario.Until(t, 3*patience, func() string {
		return fmt.Sprintf("another try of all; still to come: %d", untried(t, l.Site, h, first+1))
	}, watch(func() bool { return untried(t, l.Site, h, first+1) == 0 }))
	t.Logf("at most %d of %d workflows open", most, rows)
	if most > mostSleepers+inFlight || most < mostSleepers/2 {
		t.Errorf("%d workflows were open at once, want about %d and not more than %d", most, mostSleepers, mostSleepers+inFlight)
	}
	l.serve.Log.Await(t, patience, 2*rows+2, "attempt") // two of each row
}

// untried counts a hook's waiting rows whose last try was before an epoch.
func untried(t testing.TB, s *scenario.Site, h devstack.Hook, epoch int64) (n int) {
	t.Helper()
	err := s.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+s.Database("herald")+
		".herald_webhookrequest WHERE webhookPHID = ? AND status = 'queued' AND lastRequestEpoch < ?", h.PHID, epoch).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// newest is when the last try of a hook's rows was.
func newest(t testing.TB, s *scenario.Site, h devstack.Hook) (epoch int64) {
	t.Helper()
	err := s.DB.QueryRowContext(t.Context(), "SELECT MAX(lastRequestEpoch) FROM "+s.Database("herald")+
		".herald_webhookrequest WHERE webhookPHID = ?", h.PHID).Scan(&epoch)
	if err != nil {
		t.Fatal(err)
	}
	return epoch
}
