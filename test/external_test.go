package acceptance

import (
	"syscall"
	"testing"
	"time"

	"waybill/test/scenario"
)

// A Phorge whose own delivery is switched off needs no lock held after the last
// write: with TAKEOVER=external a stop right after one gives the hook back at
// once. The locks are the same: two processes beside each other send a row once.
func TestAnExternalTakeoverHoldsNoLockAfterAWrite(t *testing.T) {
	t.Parallel()
	for mode, held := range map[string]bool{"lock": true, "external": false} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			settings := map[string]string{"WAYBILL_HERALD_TAKEOVER": mode, "WAYBILL_HERALD_DELIVERY_TIMEOUT": "15s"}
			l := newLane(t, settings)
			// The process is ready before it says so.
			if lines := l.serve.Log.Await(t, patience, 1, "herald lane running"); len(lines) != 1 || lines[0].Text("takeover") != mode {
				t.Errorf("the start says %v", lines)
			}
			gate := scenario.NewGate(t)
			h := hook(t, l.Site, gate.URL())
			last := queue(t, l.Site, h, l.object, never)
			gate.AwaitCall(t)
			phorge := scenario.NewPhorgeWorker(t, l.Phorge)
			if !phorge.Held(t, h.PHID) {
				t.Error("the hook's lock is free during a call")
			}
			l.serve.Signal(syscall.SIGTERM)
			answered := time.Now()
			gate.Answer(t, 200)
			await(t, l.Site, last.PHID, "sent", "okay")
			wrote := time.Now()
			scenario.Until(t, patience, "the lock is free", func() bool { return !phorge.Held(t, h.PHID) })
			// The write is between the two. A lock that is held after it for nothing is
			// free 5 s later, less what it took to see the write: a second is plenty.
			after, seen := time.Since(answered), time.Since(wrote)
			if held && after < holdAfter {
				t.Errorf("the lock was free %v after the answer", after)
			} else if !held && seen >= holdAfter-time.Second {
				t.Errorf("the lock was held for %v after the last write", seen)
			}
			if code := l.serve.Wait(t, 2*patience); code != 0 {
				t.Errorf("the stop ended with %d", code)
			}
		})
	}
}

// Locks decide among Waybills in both modes: what is queued while two processes
// run is sent once.
func TestAnExternalTakeoverSendsOnceFromTwoProcesses(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"WAYBILL_HERALD_TAKEOVER": "external"}
	l := newLane(t, settings)
	l.Serve(t, settings)
	h := l.hook(t, "status200", "twice")
	var last string
	const rows = 20
	for range rows {
		last = queue(t, l.Site, h, l.object, forever).PHID
	}
	await(t, l.Site, last, "sent", "okay")
	l.receiver.Await(t, "twice", rows, patience)
	scenario.Never(t, 2*time.Second, "a row is sent twice", func() bool { return len(l.receiver.Case("twice")) > rows })
}
