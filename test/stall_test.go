package acceptance

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// Statements as they pass through a cable, in the parts that only they have.
const (
	claimStatement  = "SET dateModified = LAST_INSERT_ID("
	resultStatement = "lastRequestEpoch = IF("
)

// stall is a step at which a process is stopped, past its lease and past the
// time for which it holds its locks.
type stall struct {
	// hold keeps the process at its step; nil means during its POST.
	hold func(scenario.Cables) *scenario.Held
	// posts is how many the stopped process has made by then, or makes.
	posts int
	// onTheWay lets what is held go while the process is still stopped, as a
	// network does that is merely slow: the bytes left long ago.
	onTheWay bool
	// attempt are the states that the line about the process's own attempt may
	// have; none where it sent nothing.
	attempt []string
	// ordered is the step at which the claim stands and Temporal has not heard of
	// it yet: the order to send is held.
	ordered bool
	// fast is a receiver that has been answering fast: what follows the claim
	// asks nobody, so that only the process itself can keep it from sending.
	fast bool
}

func at(part scenario.Part, statement string) func(scenario.Cables) *scenario.Held {
	return func(c scenario.Cables) *scenario.Held { return c.MariaDB.Hold(part, statement) }
}

// stalls are all steps of an attempt. A process that had posted before it was
// stopped leaves an outcome that nobody knows: there its successor repeats.
var stalls = map[string]stall{
	"before the claim":                   {hold: at(scenario.Question, claimStatement)},
	"its claim being on the way":         {hold: at(scenario.Question, claimStatement), onTheWay: true},
	"between the claim and its answer":   {hold: at(scenario.Answer, claimStatement)},
	"the same, all in one workflow task": {hold: at(scenario.Answer, claimStatement), fast: true},
	"between the claim and the send":     {hold: at(scenario.Answer, claimStatement), ordered: true},
	"the order to send being on the way": {hold: at(scenario.Answer, claimStatement), ordered: true, onTheWay: true},
	"during the POST":                    {posts: 1, attempt: []string{"unknown"}},
	"before the write":                   {hold: at(scenario.Question, resultStatement), posts: 1, attempt: lateWrite},
	"the write being on the way":         {hold: at(scenario.Question, resultStatement), posts: 1, onTheWay: true, attempt: earlyWrite},
}

// A late write is refused; one that was on the way counts, and the successor
// makes the retry that it asks for. Either may be over its time when its answer
// is read.
var (
	lateWrite  = []string{"overtaken", "unwritten"}
	earlyWrite = []string{"recorded", "unwritten"}
)

// A process is stopped in the middle of an attempt, for longer than its lease,
// and goes on as if nothing had been. Another one has taken its hook over and
// delivered the row. The stopped one makes no POST any more, and what it still
// writes changes nothing.
func TestAStalledClaimerNeitherSendsNorOverwrites(t *testing.T) {
	t.Parallel()
	for step, s := range stalls {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s.show(t)
		})
	}
}

// stalled is what a stalled attempt is seen by.
type stalled struct {
	*scenario.Site
	receiver *scenario.Receiver
	process  *scenario.Process
	hook     devstack.Hook
	row      devstack.Row
	cables   scenario.Cables
	held     *scenario.Held
}

func (s stall) show(t *testing.T) {
	x := s.begin(t)
	x.process.Signal(syscall.SIGSTOP)
	// From here on the hook leads to where the successor is heard, and is well.
	if err := x.SetHookURI(t.Context(), x.hook.PHID, x.receiver.URL("status200", "successor")); err != nil {
		t.Fatal(err)
	}
	if s.onTheWay {
		x.held.Release()
	}
	successor := x.succeed(t, s)
	x.process.Signal(syscall.SIGCONT)
	if x.held != nil {
		x.held.Release()
	}
	sent := await(t, x.Site, x.row.PHID, "sent", "okay")
	scenario.Until(t, patience, "the stalled process notices and says what became of its attempt", func() bool {
		return len(x.process.Log.Find("the lock session cannot be kept")) > 0 &&
			(s.attempt == nil || len(x.process.Log.Find("attempt", x.row.PHID)) > 0)
	})
	scenario.Never(t, 2*time.Second, "the row changes, or is sent again", func() bool {
		return row(t, x.Site, x.row.PHID) != sent || len(x.receiver.Case("stalled")) > s.posts || len(x.receiver.Case("successor")) > 1
	})
	x.judge(t, s, successor)
}

// succeed starts another process and waits until it has delivered the row.
func (x stalled) succeed(t *testing.T, s stall) *scenario.Process {
	t.Helper()
	successor := x.Serve(t, shortLease())
	if s.ordered {
		// The stopped process has workflow tasks, which time out one by one. That
		// the lease is over and the hook taken is what matters here.
		scenario.Until(t, patience, "the hook is taken over", func() bool { return len(successor.Log.Find("did not hand")) > 0 })
		scenario.Never(t, leaseOfShort, "a POST", func() bool { return len(x.receiver.Case("stalled")) > 0 })
		return successor
	}
	// Its polls end, or Temporal would give tasks to the stopped process.
	x.cables.Temporal.Cut()
	await(t, x.Site, x.row.PHID, "sent", "okay")
	return successor
}

// begin brings a process to its step.
func (s stall) begin(t *testing.T) stalled {
	t.Helper()
	x := stalled{Site: scenario.NewSite(t, &program), receiver: scenario.NewReceiver(t, nil, time.Now)}
	object, behaviour := task(t, x.Site), "status500"
	if s.hold == nil {
		behaviour = "hang"
	}
	name := "stalled"
	if s.fast {
		name = "warming"
	}
	x.hook = hook(t, x.Site, x.receiver.URL(behaviour, name))
	x.cables = x.NewCables(t)
	x.process = x.Serve(t, x.Through(t, x.cables, shortLease()))
	if s.fast {
		x.warm(t, object)
	}
	if s.hold != nil {
		x.held = s.hold(x.cables)
	}
	x.row = queue(t, x.Site, x.hook, object, forever)
	if s.hold == nil {
		x.receiver.Await(t, "stalled", 1, patience)
	} else {
		x.held.Await(t)
	}
	if s.ordered {
		// What the process says to Temporal next is that it wants to send; the
		// payload is compressed, so the first bytes have to do.
		order := x.cables.Temporal.Hold(scenario.Question, "")
		x.held.Release()
		order.Await(t)
		x.held = order
	}
	return x
}

// warm lets the process find the hook fast: its second row says so.
func (x stalled) warm(t *testing.T, object string) {
	t.Helper()
	for range 2 {
		await(t, x.Site, queue(t, x.Site, x.hook, object, never).PHID, "failed", "fail")
	}
	if err := x.SetHookURI(t.Context(), x.hook.PHID, x.receiver.URL("status200", "stalled")); err != nil {
		t.Fatal(err)
	}
}

func (x stalled) judge(t *testing.T, s stall, successor *scenario.Process) {
	t.Helper()
	if n, after := len(x.receiver.Case("stalled")), len(x.receiver.Case("successor")); n != s.posts || after != 1 {
		t.Errorf("%d POSTs by the stalled process and %d by its successor, want %d and 1", n, after, s.posts)
	}
	lines := x.process.Log.Find("attempt", x.row.PHID)
	if len(lines) != s.posts || s.posts > 0 && !slices.Contains(s.attempt, lines[0].Text("state")) {
		t.Errorf("the stalled process says of its attempt: %v, want %v", lines, s.attempt)
	}
	for _, p := range []*scenario.Process{x.process, successor} {
		if code := p.Stop(t); code != 0 {
			t.Errorf("a stop afterwards ended with %d", code)
		}
	}
}
