package ledger_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"waybill/internal/herald"
	"waybill/internal/ledger"
)

func silencePause() herald.Pause {
	return herald.Pause{HookPHID: ledger.AllHooks, At: moment(), By: "waybill", Reason: "silence"}
}

func evidence(from, to int) (rows []herald.Request) {
	for i := from; i < to; i++ {
		rows = append(rows, herald.Request{PHID: fmt.Sprint("PHID-HWBR-", i), Modified: 4294967295})
	}
	return rows
}

func hold(t *testing.T, l *ledger.Ledger, rows []herald.Request) bool {
	t.Helper()
	held, err := l.Hold(t.Context(), rows, silencePause())
	must(t, err)
	return held
}

func isHeld(t *testing.T, l *ledger.Ledger) bool {
	t.Helper()
	p, err := l.Paused(t.Context(), "any")
	must(t, err)
	return p != nil
}

// Evidence holds all hooks once: what was known at a resume never holds again.
func TestOnlyNewEvidenceHoldsAgain(t *testing.T) {
	l, _ := migrated(t)
	if hold(t, l, nil) || isHeld(t, l) {
		t.Error("held without evidence")
	}
	if !hold(t, l, evidence(0, 1201)) || !isHeld(t, l) { // more than two statements' worth
		t.Fatal("not held by new evidence")
	}
	if hold(t, l, evidence(0, 1202)) {
		t.Error("a hold that stands was reported as new")
	}
	clearPause(t, l, ledger.AllHooks)
	if hold(t, l, evidence(0, 1202)) || isHeld(t, l) {
		t.Error("held again by what was known")
	}
	if !hold(t, l, evidence(1200, 1203)) || !isHeld(t, l) {
		t.Error("not held again by a new row")
	}
	clearPause(t, l, ledger.AllHooks)
	again := evidence(0, 1)
	again[0].Modified = 17
	if !hold(t, l, again) {
		t.Error("a row that was silenced a second time is no evidence")
	}
}

// An operator's word about all hooks stands; the evidence is remembered, so that
// the operator's resume is not undone by it.
func TestAnOperatorsOrderStandsBesideSilence(t *testing.T) {
	for _, released := range []bool{false, true} {
		l, _ := migrated(t)
		own := herald.Pause{HookPHID: ledger.AllHooks, At: moment(), By: "ada", Reason: "upgrade", Released: released}
		must(t, l.SetPause(t.Context(), own))
		if hold(t, l, evidence(0, 3)) {
			t.Error("an operator's order was taken for a new hold")
		}
		if p, err := l.Paused(t.Context(), "any"); err != nil || p == nil || *p != own {
			t.Errorf("stands %+v, %v", p, err)
		}
		clearPause(t, l, ledger.AllHooks)
		if hold(t, l, evidence(0, 3)) || isHeld(t, l) {
			t.Error("held after resume by evidence that was known")
		}
	}
}

// Many processes see the same rows at the same moment: one of them reports it.
func TestManyProcessesHoldOnce(t *testing.T) {
	l, _ := migrated(t)
	var held atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 10 {
				ok, err := l.Hold(t.Context(), evidence(0, 20*(i+1)), silencePause())
				if ok {
					held.Add(1)
				}
				if err != nil {
					t.Log(err) // a deadlock that the server broke: the next look tries again
				}
			}
		})
	}
	group.Wait()
	if n := held.Load(); n != 1 || !isHeld(t, l) {
		t.Errorf("%d processes report the hold, want one", n)
	}
}

func TestOldEvidenceIsForgotten(t *testing.T) {
	l, exec := migrated(t)
	hold(t, l, evidence(0, 2))
	exec("UPDATE silence_evidence SET seen_at = seen_at - INTERVAL 25 HOUR WHERE request_phid = 'PHID-HWBR-0'")
	hold(t, l, evidence(2, 3))
	clearPause(t, l, ledger.AllHooks)
	if hold(t, l, evidence(1, 3)) {
		t.Error("recent evidence was forgotten")
	}
	if !hold(t, l, evidence(0, 1)) {
		t.Error("evidence of yesterday is kept for ever")
	}
}
