package workflows_test

import (
	"errors"
	"testing"
	"time"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/internal/sourcetest"
	"waybill/workflows"
)

// verdict is what a state leads to: an end, or a wait and another attempt.
type verdict struct {
	end  workflows.Outcome
	wait time.Duration
}

const (
	stated    = 17 * time.Second // what an answer names
	shortWait = 2 * time.Second  // where it names nothing
)

// Every state of a claim, for a run that has sent nothing and for one that has.
func TestEveryClaimState(t *testing.T) {
	type pair struct{ first, later verdict }
	same := func(v verdict) pair { return pair{v, v} }
	table := map[activities.ClaimState]pair{
		activities.Won:           same(verdict{end: workflows.Delivered}),
		activities.Finished:      same(verdict{end: workflows.Delivered}),
		activities.Misconfigured: same(verdict{end: workflows.Delivered}), // by the row, below
		activities.Collected:     same(verdict{end: workflows.Gone}),
		activities.Untouched:     same(verdict{end: workflows.Unprocessable}),
		activities.Paused:        same(verdict{end: workflows.Deferred}),
		activities.BreakerOpen:   same(verdict{end: workflows.Deferred}),
		activities.Resting:       same(verdict{wait: stated}),
		activities.Leased:        same(verdict{wait: stated}),
		activities.Unowned:       {verdict{end: workflows.Deferred}, verdict{wait: stated}},
		activities.Elsewhere:     {verdict{end: workflows.Deferred}, verdict{wait: stated}},
		activities.Busy:          {verdict{end: workflows.Deferred}, verdict{wait: stated}},
		activities.Lost:          {verdict{end: workflows.Deferred}, verdict{wait: stated}},
	}
	for _, name := range sourcetest.Constants(t, "../activities/types.go", "ClaimState") {
		state := activities.ClaimState(name)
		want, ok := table[state]
		if !ok {
			t.Errorf("the table lacks %q", state)
			continue
		}
		answer := activities.ClaimResult{
			State: state, Version: version, Queue: queue, Wait: stated, Row: sentRow, Reason: "A sentence.",
		}
		t.Run("first "+name, func(t *testing.T) { playClaim(t, answer, 0, want.first) })
		t.Run("later "+name, func(t *testing.T) { playClaim(t, answer, 1, want.later) })
	}
}

// playClaim lets a run meet one answer after so many failed attempts.
func playClaim(t *testing.T, c activities.ClaimResult, failures int, want verdict) {
	t.Helper()
	s := newStage(t)
	for range failures {
		s.claims = append(s.claims, answer(won))
	}
	s.claims = append(s.claims, answer(c))
	if c.State == activities.Elsewhere {
		s.claims = append(s.claims, answer(c)) // that owner does not have it either
	}
	s.claims = append(s.claims, answer(won))
	for range failures {
		s.sends = append(s.sends, answer(again))
	}
	s.sends = append(s.sends, answer(delivered))
	res, err := s.run(workflows.RequestInput{})
	if err != nil {
		t.Fatal(err)
	}
	if want.end == "" {
		if res.Outcome != workflows.Delivered || res.Attempts != failures+1 {
			t.Errorf("after the wait: %+v", res)
		}
		last := len(s.runs) - 1 // claim, send: the claim before has the answer
		if got := s.gap(last - 2); got != want.wait {
			t.Errorf("waited %v, want %v", got, want.wait)
		}
		return
	}
	if res.Outcome != want.end {
		t.Errorf("ended %q, want %q", res.Outcome, want.end)
	}
	if res.State != c.State {
		t.Errorf("state %q, want the claim's %q", res.State, c.State)
	}
	if deferred := res.Outcome == workflows.Deferred; deferred != (res.Wait > 0) {
		t.Errorf("wait %v of a run that ended %q", res.Wait, res.Outcome)
	}
}

// What stands in the row says how the request ended.
func TestTheRowNamesTheEnd(t *testing.T) {
	for _, c := range []struct {
		row  *activities.RowEnd
		want workflows.Outcome
	}{
		{sentRow, workflows.Delivered},
		{failedRow, workflows.Failed},
		{&activities.RowEnd{Status: "unheard-of"}, workflows.Failed},
		{nil, workflows.Failed},
	} {
		for _, state := range []activities.ClaimState{activities.Finished, activities.Misconfigured} {
			s := newStage(t)
			s.claims = claims(activities.ClaimResult{State: state, Row: c.row})
			if res, err := s.run(workflows.RequestInput{}); err != nil || res.Outcome != c.want {
				t.Errorf("%s %+v: %+v, %v", state, c.row, res, err)
			}
		}
	}
}

// Every state of a send, at a first attempt and at a later one.
func TestEverySendState(t *testing.T) {
	table := map[activities.SendState]verdict{
		activities.Recorded:  {end: workflows.Delivered},
		activities.Unwritten: {wait: stated}, // without anything to write: ask the row
		activities.Overtaken: {end: workflows.Overtaken},
		activities.Vanished:  {end: workflows.Gone},
		activities.Unknown:   {wait: stated},
		activities.Unsent:    {wait: stated},
	}
	for _, name := range sourcetest.Constants(t, "../activities/types.go", "SendState") {
		want, ok := table[activities.SendState(name)]
		if !ok {
			t.Errorf("the table lacks %q", name)
			continue
		}
		sent := activities.SendResult{State: activities.SendState(name), Wait: stated, Row: sentRow, Reason: "A sentence."}
		t.Run("first "+name, func(t *testing.T) { playSend(t, sent, 0, want) })
		t.Run("later "+name, func(t *testing.T) { playSend(t, sent, 1, want) })
	}
}

func playSend(t *testing.T, sent activities.SendResult, failures int, want verdict) {
	t.Helper()
	s := newStage(t)
	s.claims = claims(won)
	for range failures {
		s.sends = append(s.sends, answer(again))
	}
	s.sends = append(s.sends, answer(sent), answer(delivered))
	res, err := s.run(workflows.RequestInput{})
	if err != nil {
		t.Fatal(err)
	}
	attempts := failures + 1
	if want.end == "" {
		attempts++
		if got := s.gap(len(s.runs) - 3); got != want.wait {
			t.Errorf("waited %v, want %v", got, want.wait)
		}
		want.end = workflows.Delivered
	}
	if res.Outcome != want.end || res.Attempts != attempts {
		t.Errorf("%+v, want %q after %d", res, want.end, attempts)
	}
	if foreign := want.end != workflows.Delivered; foreign != (res.Row == nil) {
		t.Errorf("row %+v reported at the end %q", res.Row, res.Outcome)
	}
}

// Recorded results: done for good, or again after the backoff.
func TestRecordedResults(t *testing.T) {
	for _, c := range []struct {
		name string
		sent activities.SendResult
		want workflows.Outcome
	}{{"delivered", delivered, workflows.Delivered}, {"failed", failed, workflows.Failed}} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.claims, s.sends = claims(won), sends(c.sent)
			res, err := s.run(workflows.RequestInput{})
			if err != nil || res.Outcome != c.want || res.Attempts != 1 || *res.Row != *c.sent.Row {
				t.Errorf("%+v, %v", res, err)
			}
			s.expect("claim*", "send")
		})
	}
}

// Every outcome of a late write, and one that this program does not know.
func TestEveryWriteBackOutcome(t *testing.T) {
	table := map[herald.WriteOutcome]workflows.Outcome{
		herald.Written: workflows.Delivered, herald.Collected: workflows.Gone, herald.Fenced: workflows.Overtaken,
	}
	for _, name := range sourcetest.Constants(t, "../internal/herald/attempt.go", "WriteOutcome") {
		outcome := herald.WriteOutcome(name)
		want, ok := table[outcome]
		if !ok {
			t.Errorf("the table lacks %q", name)
			continue
		}
		s := newStage(t)
		s.claims, s.sends = claims(fast), sends(unwritten)
		s.writes = []func() (activities.WriteBackResult, error){answer(activities.WriteBackResult{Outcome: outcome})}
		res, err := s.run(workflows.RequestInput{})
		if err != nil || res.Outcome != want {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		s.expect("claim*", "send*", "write back")
	}
}

// A late write is tried until it stands; the request is not sent meanwhile.
func TestWriteBackIsTriedUntilItStands(t *testing.T) {
	s := newStage(t)
	s.claims, s.sends = claims(fast), sends(unwritten)
	away := failure[activities.WriteBackResult](errors.New("the database is away"))
	for range 30 {
		s.writes = append(s.writes, away)
	}
	s.writes = append(s.writes, answer(activities.WriteBackResult{Outcome: herald.Written}))
	res, err := s.run(workflows.RequestInput{})
	if err != nil || res.Outcome != workflows.Delivered || res.Attempts != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	// The environment gives up on an activity after ten tries, as an operator
	// may: also then it is the write that is tried again.
	if n := len(s.names()); n != 2+31 {
		t.Errorf("%d activities ran: %q", n, s.names())
	}
}
