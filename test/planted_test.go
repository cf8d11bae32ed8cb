package acceptance

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/planted"
	"waybill/test/scenario"
)

// plant is the smallest story in which a planted bug shows.
type plant struct {
	behaviour string // of the one hook
	play      func(*testing.T, *bed)
	// rule is how what the judge says of the bug begins.
	rule string
	// text is what only the bug's code says or asks, empty where that is nothing: a
	// program without it has no such code.
	text string
}

// plants has one for each bug. What is done in them is no fault of the fleet's:
// none may serve as an excuse.
func plants() map[planted.Bug]plant {
	return map[planted.Bug]plant{
		planted.NoFence:          {scenario.Fast, failedBeforeTheWrite, "overwritten:", " AND ? > 0"},
		planted.NoLeaseCheck:     {scenario.Fast, unheardAfterTheClaim, "late:", ""},
		planted.SecondSelect:     {scenario.Fast, savedBeforeTheAnswer, "fence:", "SELECT dateModified FROM herald_webhookrequest WHERE id = ?"},
		planted.ReportFirst:      {scenario.Hanging, terminatedDuringTheCall, "unexplained:", "left to the write-back"},
		planted.RetryOutsideSlot: {scenario.Faltering, retriesBesideFirstTries, "overlap:", ""},
		planted.EarlyRelease:     {scenario.Hanging, stoppedDuringTheCall, "overlap:", ""},
		planted.Replay:           {scenario.Breaking, brokenWithoutAnAnswer, "claim:", ""},
	}
}

// bed is where they are grown: a yard with one serve behind cables.
type bed struct {
	yard
	serve   *scenario.Member
	cables  scenario.Cables
	touched map[string]time.Time
}

// A build with a bug breaks the rule that forbids it, each time and not by
// chance; the same happens to the true build, which keeps all rules.
func TestEachPlantedBugBreaksItsRule(t *testing.T) {
	t.Parallel()
	for _, bug := range planted.All() {
		p, known := plants()[bug]
		if !known {
			t.Errorf("no story shows %s", bug)
			continue
		}
		t.Run(string(bug), func(t *testing.T) {
			t.Parallel()
			with := &scenario.Binary{Tags: bug.Tag()}
			v := p.grow(t, with)
			broken := func(wrong string) bool { return strings.HasPrefix(wrong, p.rule) }
			if !slices.ContainsFunc(v.Wrong, broken) {
				t.Errorf("%q is not said; what is wrong: %q", p.rule, v.Wrong)
			}
			if !p.isIn(t, with) {
				t.Errorf("%q is not in its program", p.text)
			}
		})
		t.Run(string(bug)+", not planted", func(t *testing.T) {
			t.Parallel()
			p.grow(t, &program).Report(t)
			if p.text != "" && p.isIn(t, &program) {
				t.Errorf("%q is in the true program", p.text)
			}
		})
	}
}

// grow plays the story with a program and judges what is left.
func (p plant) grow(t *testing.T, with *scenario.Binary) scenario.Verdict {
	b := &bed{yard: yardOf(t, with), touched: map[string]time.Time{}}
	b.rules.UseWithin = useWithin
	b.cables = b.NewCables(t)
	b.fleet.Dress = func(string) map[string]string { return b.Through(t, b.cables, nil) }
	b.load.AddHooks(t, 1, p.behaviour)
	b.serve = b.fleet.Launch(t, 1, "serve")[0]
	b.fleet.AwaitReady(t)
	b.awaitShares(t, 1)
	p.play(t, b)
	b.load.AwaitDone(t, 2*patience)
	e := scenario.Gather(t, b.load, b.journal, b.fleet, b.rules)
	e.Touched, e.Saved = b.touched, map[string]bool{} // nobody plays Phorge's worker
	v := e.Judge()
	for _, wrong := range v.Wrong {
		t.Logf("the judge: %s", wrong)
	}
	return v
}

// isIn says whether the bug's text is in a program.
func (p plant) isIn(t *testing.T, program *scenario.Binary) bool {
	t.Helper()
	code, err := os.ReadFile(program.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(code, []byte(p.text))
}

// queue queues so many rows for the hook and returns the last one's PHID.
func (b *bed) queue(t *testing.T, n int) string {
	t.Helper()
	b.load.Queue(t, n, devstack.RetryForever)
	rows := b.load.Rows()
	return rows[len(rows)-1].PHID
}

// called waits until a call is under way.
func (b *bed) called(t *testing.T) {
	t.Helper()
	scenario.Until(t, patience, "a call is under way", func() bool { return b.witness.UnderWay() > 0 })
}

// Phorge fails the row between the answer to its call and the write of that. The
// row is at an end then: only the workflow tells when the write has been made or
// refused.
func failedBeforeTheWrite(t *testing.T, b *bed) {
	write := b.cables.MariaDB.Hold(scenario.Question, resultStatement)
	row := b.queue(t, 1)
	write.Await(t)
	if err := b.load.Fail(t.Context()); err != nil {
		t.Fatal(err)
	}
	write.Release()
	outcome(t, b.Site, devstack.Row{PHID: row})
}

// tooLate is beyond the time in which a claim may be used and the 3 s by which
// the judge allows a receiver to be late.
const tooLate = useWithin + 4*time.Second

// The order to send comes when most of the lease is over.
func unheardAfterTheClaim(t *testing.T, b *bed) {
	answer := b.cables.MariaDB.Hold(scenario.Answer, claimStatement)
	b.queue(t, 1)
	answer.Await(t)
	b.cables.Temporal.Freeze()
	answer.Release()
	scenario.Never(t, tooLate, "a call", func() bool { return len(b.witness.Calls()) > 0 })
	b.cables.Temporal.Thaw()
}

// Somebody saves the row between its claim and the answer to that.
func savedBeforeTheAnswer(t *testing.T, b *bed) {
	answer := b.cables.MariaDB.Hold(scenario.Answer, claimStatement)
	b.queue(t, 1)
	answer.Await(t)
	row, err := b.load.Touch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.touched[row] = time.Now()
	answer.Release()
}

// Nobody is there any more to whom a result could be reported.
func terminatedDuringTheCall(t *testing.T, b *bed) {
	row := b.queue(t, 1)
	b.called(t)
	if err := b.Temporal.TerminateWorkflow(t.Context(), "request/"+row, "", "to see who writes"); err != nil {
		t.Fatal(err)
	}
}

// First tries take so long, one after the other, that the retries come due among
// them.
func retriesBesideFirstTries(t *testing.T, b *bed) {
	const each = 300 * time.Millisecond // see scenario.Faltering
	b.queue(t, int(backoff/each)+6)
}

// The owner is stopped while it calls; another process wants the hook.
func stoppedDuringTheCall(t *testing.T, b *bed) {
	b.fleet.Launch(t, 1, "serve")
	b.fleet.AwaitReady(t)
	b.queue(t, 2)
	b.called(t)
	if code := b.serve.Stop(t); code != 0 {
		t.Errorf("the stop ended with %d", code)
	}
}

// The receiver resets the connection when it has read the call.
func brokenWithoutAnAnswer(t *testing.T, b *bed) { b.queue(t, 1) }
