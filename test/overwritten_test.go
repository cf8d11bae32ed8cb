package acceptance

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"waybill/test/scenario"
)

// Phorge read a row before Waybill finished it, and saves its own failure
// afterwards: the row stays as Phorge left it, nothing is sent again, and that
// the row no longer says what was delivered is reported once and counted.
func TestWhatPhorgesSaveOverwroteIsReported(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	h := l.hook(t, "status200", "overwritten")
	untouched := queue(t, l.Site, h, l.object, never)
	await(t, l.Site, untouched.PHID, "sent", "okay")
	hooksCommand(t, l.Site, "pause", "--all")
	r := queue(t, l.Site, h, l.object, forever)
	failedByPhorge(t, l.Site, r.PHID, "object", func() {
		hooksCommand(t, l.Site, "resume", "--all")
		await(t, l.Site, r.PHID, "sent", "okay")
	})
	saved := row(t, l.Site, r.PHID)
	const said = "a finished request was overwritten"
	scenario.Until(t, 2*patience, "the overwritten row is reported", func() bool { return len(l.serve.Log.Find(said)) > 0 })
	scenario.Never(t, 3*time.Second, "a second report, or one about another row", func() bool { return len(l.serve.Log.Find(said)) > 1 })
	line := l.serve.Log.Find(said, r.PHID)
	if len(line) != 1 || line[0].Text("level") != "warn" || line[0].Text("hook") != h.PHID ||
		line[0].Text("stood") != "sent/okay http 200" || line[0].Text("stands") != "failed/none hook object" {
		t.Errorf("reported as %v", line)
	}
	metrics := l.serve.Get(t, "/metrics", "")
	if metrics.Status != http.StatusOK || !strings.Contains(metrics.Body, "\nwaybill_herald_overwritten_total 1\n") {
		t.Errorf("not counted once:\n%s", metrics.Body)
	}
	if got := row(t, l.Site, r.PHID); got != saved {
		t.Errorf("Phorge's row was fought over: %+v, was %+v", got, saved)
	}
	if n := len(l.receiver.Case("overwritten")); n != 2 {
		t.Errorf("%d requests for two rows", n)
	}
}
