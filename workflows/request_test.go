package workflows_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"waybill/activities"
	"waybill/workflows"
)

func TestFastReceiversAreSentToInsideTheTask(t *testing.T) {
	s := newStage(t)
	s.claims, s.sends = claims(fast), sends(delivered)
	res, err := s.run(workflows.RequestInput{})
	if err != nil || res.Outcome != workflows.Delivered {
		t.Fatalf("%+v, %v", res, err)
	}
	s.expect("claim*", "send*")
}

func TestBackoffThenNextAttempt(t *testing.T) {
	s := newStage(t)
	s.claims, s.sends = claims(fast), sends(again, again, delivered)
	res, err := s.run(workflows.RequestInput{})
	if err != nil || res.Outcome != workflows.Delivered || res.Attempts != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	// Retries are tasks of their own on the owner's queue, fast or not.
	s.expect("claim*", "send*", "claim*", "send", "claim*", "send")
	for _, n := range []int{1, 3} {
		if got := s.gap(n); got != backoff {
			t.Errorf("rested %v, want %v", got, backoff)
		}
	}
	for i, want := range []int{1, 1, 2, 2, 3, 3} {
		if s.runs[i].attempt != want {
			t.Errorf("activity %d has attempt %d, want %d", i, s.runs[i].attempt, want)
		}
	}
	if s.runs[3].queue != queue {
		t.Errorf("sent on %q", s.runs[3].queue)
	}
}

// A database that is away defers a run that has sent nothing, so that waiting
// rows stay rows; a later one asks again.
func TestClaimThatFails(t *testing.T) {
	away := failure[activities.ClaimResult](errors.New("away"))
	s := newStage(t)
	s.claims = []func() (activities.ClaimResult, error){away}
	res, err := s.run(workflows.RequestInput{})
	if err != nil || res.Outcome != workflows.Deferred || res.State != "" || res.Wait <= 0 {
		t.Errorf("%+v, %v", res, err)
	}
	s = newStage(t)
	s.claims, s.sends = append(claims(won), away, answer(won)), sends(again, delivered)
	res, err = s.run(workflows.RequestInput{})
	if err != nil || res.Outcome != workflows.Delivered || s.gap(2) != 5*time.Second {
		t.Errorf("%+v, %v, rested %v", res, err, s.gap(2))
	}
}

// With the owner elsewhere claim and send go there; its being fast does not
// make this process able to send.
func TestElsewhereAsksTheOwnerOnItsQueue(t *testing.T) {
	s := newStage(t)
	s.claims, s.sends = claims(activities.ClaimResult{State: activities.Elsewhere, Queue: "waybill/other"}, fast), sends(delivered)
	res, err := s.run(workflows.RequestInput{})
	if err != nil || res.Outcome != workflows.Delivered || res.State != activities.Won {
		t.Errorf("%+v, %v", res, err)
	}
	s.expect("claim*", "claim", "send")
	if s.runs[1].queue != "waybill/other" || s.runs[2].queue != queue {
		t.Errorf("queues %q and %q", s.runs[1].queue, s.runs[2].queue)
	}
}

func notStarted() error {
	return temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
}

func TestOwnerThatDoesNotAnswer(t *testing.T) {
	s := newStage(t)
	elsewhere := activities.ClaimResult{State: activities.Elsewhere, Queue: "waybill/dead"}
	s.claims = append(claims(elsewhere), failure[activities.ClaimResult](notStarted()))
	res, err := s.run(workflows.RequestInput{})
	if err != nil || res.Outcome != workflows.Deferred || !strings.Contains(res.Reason, "owner did not answer") {
		t.Errorf("%+v, %v", res, err)
	}
}

// A send that was not started is known unsent and claimed again soon; one that
// was lost may have arrived, and only the row's lease tells how long to wait.
func TestSendThatIsNotHeardOfAgain(t *testing.T) {
	leased := activities.ClaimResult{State: activities.Leased, Wait: stated}
	for _, c := range []struct {
		name, text string
		err        error
	}{
		{"not started", "nothing was sent", notStarted()},
		{"lost", "not heard of again", temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil)},
		{"died", "not heard of again", errors.New("the process died")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.claims = claims(won, leased, won)
			s.sends = append([]func() (activities.SendResult, error){failure[activities.SendResult](c.err)}, sends(delivered)...)
			var details string
			s.RegisterDelayedCallback(func() { details = s.details() }, time.Second)
			res, err := s.run(workflows.RequestInput{})
			if err != nil || res.Outcome != workflows.Delivered || res.Attempts != 2 {
				t.Errorf("%+v, %v", res, err)
			}
			s.expect("claim*", "send", "claim*", "claim*", "send")
			if s.gap(1) != shortWait || s.gap(2) != stated {
				t.Errorf("rested %v and %v", s.gap(1), s.gap(2))
			}
			if !strings.Contains(details, c.text) {
				t.Errorf("details %q", details)
			}
		})
	}
}

// A process that dies during a send is noticed when the lease is over.
func TestASendIsGivenUpOnWithItsLease(t *testing.T) {
	for named, want := range map[time.Duration]time.Duration{0: 6 * time.Minute, 40 * time.Second: 40 * time.Second} {
		s := newStage(t)
		s.claims, s.sends = claims(won), sends(delivered)
		if _, err := s.run(workflows.RequestInput{Lease: named}); err != nil {
			t.Fatal(err)
		}
		if got := s.runs[1].within; got != want {
			t.Errorf("lease %v: a send may take %v", named, got)
		}
	}
}

// details reads the Web UI's text.
func (s *stage) details() string {
	s.t.Helper()
	value, err := s.QueryWorkflow("__temporal_workflow_metadata")
	if err != nil {
		s.t.Error(err)
		return ""
	}
	var m sdk.WorkflowMetadata
	if err := value.Get(&m); err != nil {
		s.t.Error(err)
	}
	return m.GetCurrentDetails()
}

func TestCancelDuringARestEndsTheRun(t *testing.T) {
	s := newStage(t)
	s.claims, s.sends = claims(won), sends(again)
	s.RegisterDelayedCallback(s.CancelWorkflow, 10*time.Second)
	_, err := s.run(workflows.RequestInput{})
	if !temporal.IsCanceledError(errors.Unwrap(err)) {
		t.Errorf("ended with %v", err)
	}
	s.expect("claim*", "send")
}

// Cancelling does not cut an attempt in half: its result counts, and where
// nothing is left to do the run ends as it would have.
func TestCancelDuringAnAttempt(t *testing.T) {
	for _, c := range []struct {
		name     string
		claim    activities.ClaimResult
		sent     activities.SendResult
		want     workflows.Outcome // empty: cancelled
		ran      []string
		inClaim  bool
		writings int
	}{
		{"send delivers", won, delivered, workflows.Delivered, []string{"claim*", "send"}, false, 0},
		{"send inside the task delivers", fast, delivered, workflows.Delivered, []string{"claim*", "send*"}, false, 0},
		{"send fails for now", won, again, "", []string{"claim*", "send"}, false, 0},
		{"claim", won, delivered, workflows.Delivered, []string{"claim*", "send"}, true, 0},
		{"write back", won, unwritten, workflows.Delivered, []string{"claim*", "send", "write back", "write back", "write back"}, false, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.claims, s.sends = claims(c.claim), sends(c.sent)
			if c.inClaim {
				s.claims[0] = during(c.claim, s.CancelWorkflow)
			} else {
				s.sends[0] = during(c.sent, s.CancelWorkflow)
			}
			for range c.writings {
				s.writes = append(s.writes, failure[activities.WriteBackResult](errors.New("away")))
			}
			s.writes = append(s.writes, answer(activities.WriteBackResult{Outcome: "written"}))
			res, err := s.run(workflows.RequestInput{})
			if c.want == "" && !temporal.IsCanceledError(errors.Unwrap(err)) {
				t.Errorf("ended with %+v, %v", res, err)
			}
			if c.want != "" && (err != nil || res.Outcome != c.want) {
				t.Errorf("%+v, %v", res, err)
			}
			s.expect(c.ran...)
		})
	}
}

func TestCancelledBeforeItBeganSendsNothing(t *testing.T) {
	s := newStage(t)
	s.claims = claims(won)
	s.RegisterDelayedCallback(s.CancelWorkflow, 0)
	if _, err := s.run(workflows.RequestInput{}); !temporal.IsCanceledError(errors.Unwrap(err)) {
		t.Errorf("ended with %v", err)
	}
	s.expect()
}

// A long history is continued in a new run, which knows the attempts and what
// an operator asked for meanwhile.
func TestContinueAsNew(t *testing.T) {
	const lease = 30 * time.Second
	for _, asked := range []bool{false, true} {
		s := newStage(t)
		s.SetContinueAsNewSuggested(true)
		s.claims, s.sends = claims(won), sends(again)
		if asked {
			s.RegisterDelayedCallback(func() { s.SignalWorkflow(workflows.SignalRetryNow, nil) }, time.Second)
		}
		_, err := s.run(workflows.RequestInput{Attempts: 4, Lease: lease, Attributes: true})
		var next *workflow.ContinueAsNewError
		if !errors.As(err, &next) {
			t.Fatalf("ended with %v", err)
		}
		var in workflows.RequestInput
		if err := s.decode(next, &in); err != nil {
			t.Fatal(err)
		}
		want := workflows.RequestInput{Ref: ref, Attempts: 5, Now: asked, Lease: lease, Attributes: true}
		if in != want {
			t.Errorf("continues with %+v, want %+v", in, want)
		}
	}
}

// A row that fails for days has short runs, with all that an operator sees going
// on from one to the next.
func TestARunThatRestsOftenIsContinued(t *testing.T) {
	s := newStage(t)
	s.claims, s.sends = claims(won), sends(again)
	_, err := s.run(workflows.RequestInput{Attempts: 50})
	var next *workflow.ContinueAsNewError
	if !errors.As(err, &next) {
		t.Fatalf("ended with %v", err)
	}
	var in workflows.RequestInput
	if err := s.decode(next, &in); err != nil || in.Attempts != 75 {
		t.Errorf("continues with %+v after 25 attempts, %v", in, err)
	}
}

func TestContinuedRunGoesOn(t *testing.T) {
	s := newStage(t)
	s.claims, s.sends = claims(activities.ClaimResult{State: activities.Busy}, fast), sends(delivered)
	res, err := s.run(workflows.RequestInput{Attempts: 5, Now: true})
	if err != nil || res.Attempts != 6 {
		t.Errorf("%+v, %v", res, err)
	}
	s.expect("claim*", "claim*", "send")
	if !s.runs[0].now || s.runs[2].attempt != 6 {
		t.Errorf("%+v", s.runs)
	}
}

// Cancelled and long at the same time, it is cancelled.
func TestCancelledRunIsNotContinued(t *testing.T) {
	s := newStage(t)
	s.SetContinueAsNewSuggested(true)
	s.claims, s.sends = claims(won), sends(again)
	s.RegisterDelayedCallback(s.CancelWorkflow, time.Second)
	if _, err := s.run(workflows.RequestInput{}); !temporal.IsCanceledError(errors.Unwrap(err)) {
		t.Errorf("ended with %v", err)
	}
}

// A retry that finds no room in its hook's line comes again later and later: a
// hook may have a hundred of them.
func TestRetriesThatFindNoRoomComeLessOften(t *testing.T) {
	s := newStage(t)
	s.claims = claims(won)
	for range 6 {
		s.claims = append(s.claims, answer(activities.ClaimResult{State: activities.Busy}))
	}
	s.claims = append(s.claims, answer(won), answer(activities.ClaimResult{State: activities.Busy}), answer(won))
	s.sends = sends(again, again, delivered)
	if _, err := s.run(workflows.RequestInput{}); err != nil {
		t.Fatal(err)
	}
	var got []time.Duration
	for n := 2; n < 8; n++ {
		got = append(got, s.gap(n))
	}
	got = append(got, s.gap(10))
	want := []time.Duration{
		2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second, 2 * time.Second,
	}
	if !slices.Equal(got, want) {
		t.Errorf("rested %v, want %v", got, want)
	}
}

// Sends that nobody takes up in time are asked for less and less often, until
// one is made.
func TestSendsThatAreNotMadeAreAskedForLessOften(t *testing.T) {
	s := newStage(t)
	s.claims = claims(won)
	unsent := activities.SendResult{State: activities.Unsent, Reason: "A sentence."}
	s.sends = sends(unsent, unsent, unsent, unsent, unsent, unsent, again, unsent, delivered)
	if _, err := s.run(workflows.RequestInput{}); err != nil {
		t.Fatal(err)
	}
	var got []time.Duration
	for n := 1; n < len(s.runs)-1; n += 2 {
		got = append(got, s.gap(n))
	}
	want := []time.Duration{
		2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second,
		backoff, 2 * time.Second,
	}
	if !slices.Equal(got, want) {
		t.Errorf("rested %v, want %v", got, want)
	}
}
