package acceptance

import (
	"syscall"
	"testing"
	"time"

	"waybill/test/scenario"
)

// slowLease are settings for receivers that take their time: a lease of 5 s to
// start, 4 s for the exchange, 1 s for the write.
func slowLease() map[string]string {
	settings := shortLease()
	settings["WAYBILL_HERALD_DELIVERY_TIMEOUT"] = "4s"
	return settings
}

const leaseOfSlow = 10 * time.Second

// A process that is killed during a POST leaves an outcome that nobody knows.
// The row is sent again, once, and only when the lease is over.
func TestAKilledPOSTIsRepeatedOnceAfterTheLease(t *testing.T) {
	t.Parallel()
	l := newLane(t, slowLease())
	h := l.hook(t, "hang", "killed")
	r := queue(t, l.Site, h, l.object, forever)
	first := l.receiver.Await(t, "killed", 1, patience)[0]
	l.serve.Kill()
	if err := l.SetHookURI(t.Context(), h.PHID, l.receiver.URL("status200", "killed")); err != nil {
		t.Fatal(err)
	}
	l.Serve(t, slowLease())
	await(t, l.Site, r.PHID, "sent", "okay")
	scenario.Never(t, backoff+time.Second, "a second repeat", func() bool { return len(l.receiver.Case("killed")) > 2 })
	got := l.receiver.Case("killed")
	if len(got) != 2 {
		t.Fatalf("%d requests, want two", len(got))
	}
	// The lease runs from the claim, which came shortly before the request; in
	// whole seconds of the database's clock.
	if gap := got[1].At.Sub(first.At); gap < leaseOfSlow-2*time.Second {
		t.Errorf("repeated after %v, the lease is %v", gap, leaseOfSlow)
	}
}

// The same for a receiver that has been answering fast, whose calls are made in
// another place (inside the workflow task), and for every row behind it.
func TestAKilledFastPOSTIsRepeatedOnceAfterTheLease(t *testing.T) {
	t.Parallel()
	l := newLane(t, slowLease())
	gate := scenario.NewGate(t)
	gate.Open(200)
	h := hook(t, l.Site, gate.URL())
	for range 2 {
		await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "sent", "okay")
	}
	gate.Hold()
	r, behind := queue(t, l.Site, h, l.object, forever), queue(t, l.Site, h, l.object, never)
	gate.AwaitCall(t)
	l.serve.Kill()
	killed := time.Now()
	gate.Open(200)
	l.Serve(t, slowLease())
	await(t, l.Site, r.PHID, "sent", "okay")
	if waited := time.Since(killed); waited < leaseOfSlow-2*time.Second {
		t.Errorf("repeated after %v, the lease is %v", waited, leaseOfSlow)
	}
	await(t, l.Site, behind.PHID, "sent", "okay")
	if n := gate.Calls(); n != 5 {
		t.Errorf("%d calls, want two before, two for the killed row, one behind it", n)
	}
}

// SIGTERM during a POST: the answer is awaited and written, then the process
// ends with 0.
func TestAStopWaitsForThePOSTUnderWay(t *testing.T) {
	t.Parallel()
	l := newLane(t, slowLease())
	held := scenario.NewGate(t)
	h := hook(t, l.Site, held.URL())
	waiting := queue(t, l.Site, h, l.object, never)
	held.AwaitCall(t)
	next := queue(t, l.Site, h, l.object, never)
	l.serve.Signal(syscall.SIGTERM)
	scenario.Never(t, time.Second, "the process ends during the POST", l.serve.Exited)
	held.Answer(t, 200)
	if code := l.serve.Wait(t, 2*patience); code != 0 {
		t.Errorf("the stop ended with %d", code)
	}
	if got := row(t, l.Site, waiting.PHID); got.Status != "sent" || ended(got) != httpError("200") {
		t.Errorf("row is %s with %s", got.Status, ended(got))
	}
	if got := row(t, l.Site, next.PHID); got != next {
		t.Errorf("a row was begun during the stop: %+v", got)
	}
	if n := held.Calls(); n != 1 {
		t.Errorf("%d calls", n)
	}
}
