package acceptance

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// holdAfter is how long Waybill keeps a lock after its last write: Phorge
// checks the row before it asks for the lock, and not again.
const holdAfter = 5 * time.Second

// byPhorge and byWaybill count a case's requests by who made them.
func byPhorge(r *scenario.Receiver, name string) int  { return byCaller(r, name, scenario.CallerName) }
func byWaybill(r *scenario.Receiver, name string) int { return byCaller(r, name, "waybill/") }

func byCaller(r *scenario.Receiver, name, caller string) (n int) {
	for _, got := range r.Case(name) {
		if strings.HasPrefix(scenario.ParseWire(got.Raw).Header["User-Agent"], caller) {
			n++
		}
	}
	return n
}

// Phorge's own worker runs on beside Waybill, on every row, all the time: it
// never gets a hook that Waybill owns, and every row is sent once.
func TestPhorgeNeverGetsAHookThatWaybillOwns(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	var hooks []devstack.Hook
	for i := range 3 {
		hooks = append(hooks, l.hook(t, "status200", fmt.Sprint("beside-", i)))
	}
	phorge := scenario.NewPhorgeWorker(t, l.Phorge)
	for _, h := range hooks {
		scenario.Until(t, patience, "Waybill has the lock", func() bool { return phorge.Held(t, h.PHID) })
	}
	turns := map[scenario.Turn]int{}
	var rows []devstack.Row
	for i := range 30 {
		rows = append(rows, queue(t, l.Site, hooks[i%len(hooks)], l.object, forever))
		for _, r := range rows {
			turns[phorge.Turn(t, r.PHID)]++
		}
	}
	for _, r := range rows {
		await(t, l.Site, r.PHID, "sent", "okay")
		if turn := phorge.Turn(t, r.PHID); turn != scenario.Archived {
			t.Errorf("Phorge's task for a sent row: %s", turn)
		}
	}
	if turns[scenario.Called] > 0 {
		t.Errorf("Phorge got through: %v", turns)
	}
	for i := range hooks {
		if n := len(l.receiver.Case(fmt.Sprint("beside-", i))); n != len(rows)/len(hooks) {
			t.Errorf("hook %d: %d requests for %d rows", i, n, len(rows)/len(hooks))
		}
	}
}

// A call that Phorge has under way when Waybill starts is waited for, and its
// row is not sent again.
func TestACallOfPhorgesOwnIsWaitedFor(t *testing.T) {
	t.Parallel()
	site, receiver := scenario.NewSite(t, &program), scenario.NewReceiver(t, nil, time.Now)
	object := task(t, site)
	h := hook(t, site, receiver.URL("status200", "own-call"))
	mine, other := queue(t, site, h, object, never), queue(t, site, h, object, never)
	phorge := scenario.NewPhorgeWorker(t, site.Phorge)
	phorge.During = func() {
		site.Serve(t, nil)
		scenario.Never(t, 3*time.Second, "Waybill sends beside Phorge's call", func() bool { return len(receiver.Requests()) > 0 })
	}
	if turn := phorge.Turn(t, mine.PHID); turn != scenario.Called {
		t.Fatalf("Phorge %s", turn)
	}
	await(t, site, mine.PHID, "sent", "okay")
	await(t, site, other.PHID, "sent", "okay")
	scenario.Never(t, 2*time.Second, "a second request for a row", func() bool { return len(receiver.Requests()) > 2 })
	if p, w := byPhorge(receiver, "own-call"), byWaybill(receiver, "own-call"); p != 1 || w != 1 {
		t.Errorf("%d requests by Phorge, %d by Waybill, want one each", p, w)
	}
}

// After a clean stop Phorge has its hooks back at once: as soon as the process
// has ended, and not before the last write is 5 s old. A Phorge that found the
// row queued just before that write asks for the lock in vain, and then finds
// the row sent.
func TestACleanStopGivesHooksBack(t *testing.T) {
	t.Parallel()
	l := newLane(t, map[string]string{"WAYBILL_HERALD_DELIVERY_TIMEOUT": "15s"})
	gate := scenario.NewGate(t)
	h := hook(t, l.Site, gate.URL())
	phorge := scenario.NewPhorgeWorker(t, l.Phorge)
	last := queue(t, l.Site, h, l.object, never)
	gate.AwaitCall(t)
	var answered time.Time // the last write comes after it
	phorge.Between = func() {
		l.serve.Signal(syscall.SIGTERM)
		answered = time.Now()
		gate.Answer(t, 200)
		await(t, l.Site, last.PHID, "sent", "okay")
	}
	if turn := phorge.Turn(t, last.PHID); turn != scenario.Yielded {
		t.Errorf("Phorge, which had found the row queued: %s", turn)
	}
	phorge.Between = nil
	if turn := phorge.Turn(t, last.PHID); turn != scenario.Archived {
		t.Errorf("Phorge's task for the row that Waybill sent: %s", turn)
	}
	next := queue(t, l.Site, h, l.object, never)
	gate.Open(200)
	scenario.Until(t, patience, "Phorge gets the lock", func() bool { return phorge.Turn(t, next.PHID) == scenario.Called })
	if held := time.Since(answered); held < holdAfter {
		t.Errorf("the lock was free %v after the last answer, want %v at least", held, holdAfter)
	}
	if code := l.serve.Wait(t, patience); code != 0 {
		t.Errorf("a clean stop ended with %d", code)
	}
	if n := gate.Calls(); n != 2 {
		t.Errorf("%d calls for two rows", n)
	}
}

// A process that comes after a clean stop need not wait for anything; and one
// that comes after a crash waits a lease before it sends.
func TestANewOwnerWaitsOnlyAfterACrash(t *testing.T) {
	t.Parallel()
	l := newLane(t, shortLease())
	h := l.hook(t, "status200", "successor")
	await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "sent", "okay")
	if code := l.serve.Stop(t); code != 0 {
		t.Errorf("a clean stop ended with %d", code)
	}
	second := l.Serve(t, shortLease())
	begun := time.Now()
	await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "sent", "okay")
	if n := len(second.Log.Find("did not hand")); n > 0 {
		t.Error("a clean hand-over was taken for a crash")
	}
	t.Logf("after a clean stop the next row took %v", time.Since(begun))
	second.Kill()
	killed := time.Now()
	r := queue(t, l.Site, h, l.object, never)
	third := l.Serve(t, shortLease())
	await(t, l.Site, r.PHID, "sent", "okay")
	if n := len(third.Log.Find("did not hand")); n != 1 {
		t.Errorf("%d lines about the owner that did not hand over, want one", n)
	}
	got := l.receiver.Await(t, "successor", 3, patience)
	if waited := got[2].At.Sub(killed); waited < leaseOfShort {
		t.Errorf("the next owner sent %v after the crash, the lease is %v", waited, leaseOfShort)
	}
}

// shortLease are settings with the shortest lease that there is: 5 s to start,
// 1 s for the exchange, 1 s for the write.
func shortLease() map[string]string {
	return map[string]string{
		"WAYBILL_HERALD_DELIVERY_TIMEOUT": "1s", "WAYBILL_HERALD_WRITE_ALLOWANCE": "1s", "WAYBILL_HERALD_CLAIM_LEASE": "1s",
		"WAYBILL_HERALD_RETRY_BACKOFF": backoff.String(),
	}
}

const leaseOfShort = 7 * time.Second
