package workflows_test

import (
	"reflect"
	"testing"

	"waybill/activities"
	"waybill/internal/sourcetest"
	"waybill/workflows"
)

// A run whose hook has enough sleepers ends wherever it would rest, with what it
// has done; where it would end anyhow, it ends as ever.
func TestACrowdedRunEndsWhereItWouldRest(t *testing.T) {
	rests := map[string]bool{"leased": true, "resting": true, "recorded": true, "unknown": true, "unsent": true, "unwritten": true}
	for _, name := range sourcetest.Constants(t, "../activities/types.go", "ClaimState") {
		if name == string(activities.Won) {
			continue
		}
		s := newStage(t)
		c := activities.ClaimResult{State: activities.ClaimState(name), Wait: stated, Queue: queue, Row: sentRow}
		plain := c
		c.Crowded = true
		s.claims, s.sends = claims(c, c, won), sends(delivered)
		got, err := s.run(workflows.RequestInput{})
		if err != nil {
			t.Fatal(err)
		}
		s = newStage(t)
		s.claims, s.sends = claims(plain, plain, won), sends(delivered)
		want, err := s.run(workflows.RequestInput{})
		if err != nil {
			t.Fatal(err)
		}
		if rests[name] {
			want = workflows.RequestResult{Outcome: workflows.Deferred, State: c.State, Wait: stated, Row: sentRow, Reason: got.Reason}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	for _, name := range sourcetest.Constants(t, "../activities/types.go", "SendState") {
		s := newStage(t)
		s.claims = claims(won)
		s.sends = sends(activities.SendResult{State: activities.SendState(name), Wait: backoff, Retry: true, Row: queuedRow, Crowded: true}, delivered)
		got, err := s.run(workflows.RequestInput{})
		if err != nil {
			t.Fatal(err)
		}
		if (got.Outcome == workflows.Deferred) != rests[name] || got.Attempts != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A late write's result is in the row before a crowded run ends.
func TestACrowdedRunWritesBackFirst(t *testing.T) {
	s := newStage(t)
	late := unwritten
	late.Row, late.Retry, late.Crowded = queuedRow, true, true
	s.claims, s.sends = claims(won), sends(late)
	s.writes = []func() (activities.WriteBackResult, error){answer(activities.WriteBackResult{Outcome: "written"})}
	res, err := s.run(workflows.RequestInput{})
	if err != nil || res.Outcome != workflows.Deferred || res.Attempts != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	s.expect("claim*", "send", "write back")
}

// A retry that an operator asked for during the attempt comes before the end.
func TestACrowdedRunHeedsRetryNow(t *testing.T) {
	s := newStage(t)
	s.claims = claims(won)
	ask := func() { s.SignalWorkflow(workflows.SignalRetryNow, nil) }
	s.sends = append(s.sends, during(crowded, ask), answer(crowded))
	res, err := s.run(workflows.RequestInput{})
	if err != nil || res.Outcome != workflows.Deferred || res.Attempts != 2 {
		t.Errorf("%+v, %v", res, err)
	}
}
