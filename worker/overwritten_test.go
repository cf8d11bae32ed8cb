package worker

import (
	"context"
	"maps"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"waybill/activities"
	"waybill/internal/herald"
)

// afterwards is a table as it stands later, and somebody who looks back at it.
type afterwards struct {
	*Overwritten
	rows  map[uint64]herald.Ending
	away  bool
	asked []int // how many rows, statement by statement
	count int
	clock *clock
	logs  *observer.ObservedLogs
}

func newAfterwards() *afterwards {
	core, logs := observer.New(zap.InfoLevel)
	a := &afterwards{rows: map[uint64]herald.Ending{}, clock: &clock{}, logs: logs}
	a.Overwritten = NewOverwritten(OverwrittenConfig{Rows: a, Count: func() { a.count++ }, Log: zap.New(core), Clock: a.clock.now})
	return a
}

func (a *afterwards) Endings(_ context.Context, ids []uint64) (map[uint64]herald.Ending, error) {
	a.asked = append(a.asked, len(ids))
	if a.away {
		return nil, errAway
	}
	return maps.Clone(a.rows), nil
}

var (
	sentVerdict   = herald.Decide(herald.Answer{HTTPStatus: 200}, true)
	failedVerdict = herald.Decide(herald.Answer{HTTPStatus: 500}, false)
)

// finish writes a result and lets the row stand so.
func (a *afterwards) finish(id uint64, version int64, v herald.Verdict) {
	a.rows[id] = v.Ending()
	a.Wrote(activities.Ref{ID: id, PHID: "PHID-HWBR-x", HookPHID: "PHID-HWBH-x"},
		herald.ResultWrite{Claim: herald.Claim{ID: id, Version: version}, Verdict: v})
}

func (a *afterwards) lookBack(t *testing.T) {
	t.Helper()
	for a.look(t.Context()) {
	}
}

func TestAnOverwrittenRowIsReportedOnce(t *testing.T) {
	a := newAfterwards()
	a.finish(1, 5, sentVerdict)
	a.finish(2, 5, failedVerdict)
	a.finish(3, 5, sentVerdict)
	a.rows[1] = herald.Ending{Status: "failed", Result: "none", ErrorType: "hook", ErrorCode: "silent"}
	delete(a.rows, 3) // collected
	a.clock.skip(lookBackAfter - time.Second)
	a.lookBack(t)
	if a.count != 0 || len(a.asked) != 0 {
		t.Errorf("looked %v too early, reported %d", a.asked, a.count)
	}
	a.clock.skip(2 * time.Second)
	a.lookBack(t)
	a.clock.skip(time.Hour)
	a.lookBack(t)
	lines := a.logs.All()
	if a.count != 1 || len(lines) != 1 {
		t.Fatalf("counted %d, lines %v, want one", a.count, lines)
	}
	got := lines[0].ContextMap()
	if lines[0].Level != zap.WarnLevel || got["stood"] != "sent/okay http 200" || got["stands"] != "failed/none hook silent" ||
		got["request"] != "PHID-HWBR-x" || got["hook"] != "PHID-HWBH-x" || got["version"] != int64(5) {
		t.Errorf("line %v", got)
	}
	if len(a.asked) != 1 || len(a.line) != 0 || len(a.last) != 0 {
		t.Errorf("asked %v, still remembered %d and %d", a.asked, len(a.line), len(a.last))
	}
}

// Rows that are meant to change are not looked at, and a write that is told
// twice (by the sender and by the write-back) is one.
func TestOnlyFinalResultsAreRemembered(t *testing.T) {
	a := newAfterwards()
	a.finish(1, 5, herald.Decide(herald.Answer{HTTPStatus: 500}, true))
	a.finish(2, 5, sentVerdict)
	a.finish(2, 5, sentVerdict)
	if len(a.line) != 1 || a.count != 0 {
		t.Errorf("%d rows remembered, %d reported", len(a.line), a.count)
	}
}

// A row that somebody put back into the queue, and that was sent again, was
// overwritten although it says the same again.
func TestARowFinishedTwiceWasOverwritten(t *testing.T) {
	a := newAfterwards()
	a.finish(1, 5, sentVerdict)
	a.finish(1, 9, sentVerdict)
	if a.count != 1 || a.logs.Len() != 1 || a.logs.All()[0].ContextMap()["stands"] != "queued, and finished again as sent/okay http 200" {
		t.Errorf("counted %d, lines %v", a.count, a.logs.All())
	}
	a.clock.skip(time.Minute)
	a.lookBack(t)
	if a.count != 1 || len(a.last) != 0 {
		t.Errorf("counted %d, remembered %d", a.count, len(a.last))
	}
}

// Bounded memory, bounded statements, and rows kept while the table is away.
func TestLookingBackIsBounded(t *testing.T) {
	a := newAfterwards()
	for id := range uint64(rememberedAtMost + 10) {
		a.finish(id, 5, sentVerdict)
	}
	if len(a.line) != rememberedAtMost || len(a.last) != rememberedAtMost {
		t.Errorf("remembers %d and %d rows, want %d", len(a.line), len(a.last), rememberedAtMost)
	}
	a.clock.skip(time.Minute)
	a.away = true
	a.lookBack(t)
	if len(a.line) != rememberedAtMost {
		t.Error("rows were forgotten while the table was away")
	}
	a.away, a.asked, a.rows = false, nil, map[uint64]herald.Ending{7: failedVerdict.Ending()}
	a.lookBack(t)
	if a.count != 1 || len(a.line) != 0 || len(a.asked) < rememberedAtMost/lookBackAtOnce {
		t.Errorf("counted %d, %d rows left, %d statements", a.count, len(a.line), len(a.asked))
	}
	for _, n := range a.asked {
		if n > lookBackAtOnce {
			t.Errorf("%d rows in one statement", n)
		}
	}
}
