package acceptance

import (
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// useWithin is how long a claim may be used with shortLease: 5 s to start. It is
// less than the 8 s after which a workflow task that is still busy reports to
// Temporal, so that here nothing but Waybill's own check stands in the way.
const useWithin = 5 * time.Second

// What lies between a claim and its send takes too long: the claim's answer, or
// Temporal. Nothing is stopped, nothing is lost, nobody else is there. The claim
// is given up and the row is sent under a later one, once.
func TestAClaimThatComesTooLateIsNotUsed(t *testing.T) {
	t.Parallel()
	for what, s := range map[string]stall{
		"its answer":                           {hold: at(scenario.Answer, claimStatement)},
		"its answer, all in one workflow task": {hold: at(scenario.Answer, claimStatement), fast: true},
		"the order to send":                    {hold: at(scenario.Answer, claimStatement), ordered: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			x := s.begin(t)
			if err := x.SetHookURI(t.Context(), x.hook.PHID, x.receiver.URL("status200", "later")); err != nil {
				t.Fatal(err)
			}
			claimed := x.row
			if x.row = row(t, x.Site, x.row.PHID); x.row.Modified <= claimed.Modified {
				t.Fatalf("the claim does not stand: %+v", x.row)
			}
			scenario.Never(t, useWithin+500*time.Millisecond, "a POST", func() bool { return len(x.receiver.Case("stalled")) > 0 })
			x.held.Release()
			await(t, x.Site, x.row.PHID, "sent", "okay")
			x.sentUnderALaterClaim(t, x.row)
		})
	}
}

// sentUnderALaterClaim looks at a row's attempts: one that sent, not under the
// version that the row had then. Others may say that they sent nothing.
func (x stalled) sentUnderALaterClaim(t *testing.T, then devstack.Row) {
	t.Helper()
	lines := x.process.Log.Await(t, patience, 1, "attempt", then.PHID)
	if len(lines) != 1 || lines[0]["version"].(float64) <= float64(then.Modified) {
		t.Errorf("attempts: %v, want one under a version later than %d", lines, then.Modified)
	}
	if early, later := len(x.receiver.Case("stalled")), len(x.receiver.Case("later")); early != 0 || later != 1 {
		t.Errorf("%d POSTs under the late claim and %d after it, want none and one", early, later)
	}
}
