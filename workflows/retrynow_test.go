package workflows_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"waybill/activities"
	"waybill/workflows"
)

func TestRetryNowEndsARest(t *testing.T) {
	s := newStage(t)
	s.claims, s.sends = claims(won), sends(again, again, delivered)
	s.RegisterDelayedCallback(func() {
		// However often an operator asks at once, it is one retry.
		s.SignalWorkflowSkippingWorkflowTask(workflows.SignalRetryNow, nil)
		s.SignalWorkflowSkippingWorkflowTask(workflows.SignalRetryNow, "quick")
		s.SignalWorkflow(workflows.SignalRetryNow, nil)
	}, 10*time.Second)
	res, err := s.run(workflows.RequestInput{})
	if err != nil || res.Outcome != workflows.Delivered {
		t.Fatalf("%+v, %v", res, err)
	}
	if s.gap(1) != 10*time.Second || s.gap(3) != backoff {
		t.Errorf("rested %v and %v", s.gap(1), s.gap(3))
	}
	if s.runs[0].now || !s.runs[2].now || s.runs[4].now {
		t.Errorf("claims %+v", s.runs)
	}
}

// An operator's word stands until it has led to a claim, whatever comes between.
func TestRetryNowStandsUntilAClaimIsWon(t *testing.T) {
	s := newStage(t)
	s.claims = []func() (activities.ClaimResult, error){
		answer(won), failure[activities.ClaimResult](errors.New("away")),
		answer(activities.ClaimResult{State: activities.Busy}), answer(won), answer(won),
	}
	s.sends = sends(again, again, delivered)
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(workflows.SignalRetryNow, nil) }, time.Second)
	if _, err := s.run(workflows.RequestInput{}); err != nil {
		t.Fatal(err)
	}
	var now []bool
	for _, r := range s.runs {
		if r.name == "claim" {
			now = append(now, r.now)
		}
	}
	if !slices.Equal(now, []bool{false, true, true, true, false}) {
		t.Errorf("claims asked with now = %v", now)
	}
}

// A send that was not made has not been tried: the word for it still stands.
func TestRetryNowOutlivesASendThatIsNotMade(t *testing.T) {
	s := newStage(t)
	s.claims = claims(won)
	unsent := activities.SendResult{State: activities.Unsent, Reason: "A sentence."}
	s.sends = sends(again, unsent, again, delivered)
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(workflows.SignalRetryNow, nil) }, time.Second)
	if _, err := s.run(workflows.RequestInput{}); err != nil {
		t.Fatal(err)
	}
	var now []bool
	for i := 0; i < len(s.runs); i += 2 {
		now = append(now, s.runs[i].now)
	}
	if !slices.Equal(now, []bool{false, true, true, false}) {
		t.Errorf("claims asked with now = %v", now)
	}
}

func TestRetryNowDuringASendIsUsedAfterIt(t *testing.T) {
	s := newStage(t)
	s.claims = claims(won)
	s.sends = append(sends(again), during(again, func() { s.SignalWorkflow(workflows.SignalRetryNow, "please") }), answer(delivered))
	if _, err := s.run(workflows.RequestInput{}); err != nil {
		t.Fatal(err)
	}
	if s.gap(3) != 0 || !s.runs[4].now {
		t.Errorf("rested %v, then %+v", s.gap(3), s.runs[4])
	}
}

// A burst of words reaches the workflow in several tasks, some of them during
// the retry that the first ones brought. It is that retry they ask for.
func TestWordsDuringTheRetryTheyAskedForAreThatRetry(t *testing.T) {
	s := newStage(t)
	ask := func() { s.SignalWorkflow(workflows.SignalRetryNow, nil) }
	s.claims = claims(won)
	s.sends = append(sends(again), during(again, ask), answer(delivered))
	s.RegisterDelayedCallback(ask, time.Second)
	if _, err := s.run(workflows.RequestInput{}); err != nil {
		t.Fatal(err)
	}
	if s.gap(1) != time.Second || s.gap(3) != backoff || s.runs[4].now {
		t.Errorf("rested %v and %v, then %+v", s.gap(1), s.gap(3), s.runs[4])
	}
}
