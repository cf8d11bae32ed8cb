package acceptance

import (
	"os"
	"os/exec"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	commonpb "go.temporal.io/api/common/v1"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// Whoever takes a request's workflow away, or sets it back, at whatever moment:
// no call is lost and none is doubled, because the row says what is to be done
// and a claim is used once.
func TestTerminateAndResetAtAnyMoment(t *testing.T) {
	t.Parallel()
	everyMoment(t, backoff.String(), map[string]word{
		"terminate": {say: func(t *testing.T, s *story) status {
			if err := s.Temporal.TerminateWorkflow(t.Context(), s.request(), "", "to see what happens"); err != nil {
				t.Fatal(err)
			}
			return terminated
		}},
		"reset to the first task": {say: func(t *testing.T, s *story) status { return s.setBack(t, first) }},
		"reset to the last task":  {say: func(t *testing.T, s *story) status { return s.setBack(t, last) }},
	})
}

// setBack resets the request's run, or finds that the server refuses to. Then
// the run goes on as if nothing had been asked.
func (s *story) setBack(t *testing.T, which func(tasks []int64) int64) status {
	t.Helper()
	err := s.reset(t, s.request(), which)
	if (err != nil) != s.young {
		t.Fatalf("reset: %v", err)
	}
	if s.young {
		return completed
	}
	return terminated
}

func first(tasks []int64) int64 { return tasks[0] }
func last(tasks []int64) int64  { return tasks[len(tasks)-1] }

// reset sets the newest run of a workflow back to one of its tasks.
func (s *story) reset(t *testing.T, id string, which func(tasks []int64) int64) error {
	t.Helper()
	run, tasks := s.tasks(t, id)
	_, err := s.Temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: s.TemporalNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run},
		Reason: "to see what happens", WorkflowTaskFinishEventId: which(tasks), RequestId: devstack.RandomName(20),
	})
	return err
}

func (s *story) mustReset(t *testing.T, id string, which func(tasks []int64) int64) {
	t.Helper()
	if err := s.reset(t, id, which); err != nil {
		t.Fatalf("reset of %s: %v", id, err)
	}
}

// tasks are the events of a workflow's newest run that it can be reset to: ends
// of its tasks. The beginning of the first stands in for them while it lasts.
func (s *story) tasks(t *testing.T, id string) (run string, ends []int64) {
	t.Helper()
	d, err := s.Temporal.DescribeWorkflow(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	var begun int64
	for _, e := range s.history(t, id) {
		if e.GetWorkflowTaskCompletedEventAttributes() != nil {
			ends = append(ends, e.GetEventId())
		} else if e.GetWorkflowTaskScheduledEventAttributes() != nil || e.GetWorkflowTaskStartedEventAttributes() != nil {
			begun = e.GetEventId()
		}
	}
	if len(ends) == 0 {
		ends = []int64{begun}
	}
	return d.WorkflowExecution.RunID, ends
}

// Temporal's command line does the same as the Web UI's button.
func TestResetByCommandLine(t *testing.T) {
	t.Parallel()
	l := newLane(t, patient(backoff.String()))
	for when, reach := range map[string]func(*testing.T, ground) *story{"POST": duringPOST, "rest": duringRest} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			s := reach(t, ground{lane: l})
			s.command(t, "reset", "--workflow-id", s.request(), "--type", "FirstWorkflowTask", "--reason", "by hand")
			s.goOn()
			s.endsWell(t)
		})
	}
}

// command runs `temporal workflow ...` in the site's namespace.
func (s *story) command(t *testing.T, args ...string) {
	t.Helper()
	bin, err := devstack.FindTemporal(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"workflow", args[0], "--address", s.TemporalAddress, "--namespace", s.TemporalNamespace}, args[1:]...)
	if said, err := exec.CommandContext(t.Context(), bin, args...).CombinedOutput(); err != nil {
		t.Fatalf("temporal %v: %v\n%s", args, err, said)
	}
}

// A call inside the workflow task may outlast the task: then the claim stands in
// the history before the call has ended. Going back, also behind that claim,
// finds it used.
func TestALongCallInsideTheTaskIsNotRepeated(t *testing.T) {
	t.Parallel()
	l := newLane(t, patient(backoff.String()))
	for what, say := range map[string]func(*testing.T, *story){
		"undisturbed":             func(*testing.T, *story) {},
		"terminated":              func(t *testing.T, s *story) { s.command(t, "terminate", "--workflow-id", s.request()) },
		"reset to the first task": func(t *testing.T, s *story) { s.mustReset(t, s.request(), first) },
		"reset to the last task":  func(t *testing.T, s *story) { s.mustReset(t, s.request(), last) },
		"cancelled":               func(t *testing.T, s *story) { s.command(t, "cancel", "--workflow-id", s.request()) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := duringFastPOST(t, ground{lane: l})
			scenario.Until(t, patience, "the claim stands in the history", func() bool { return s.recorded(t) })
			say(t, s)
			s.goOn()
			s.endsWell(t)
		})
	}
}

// recorded says that a local activity's end stands in the history.
func (s *story) recorded(t *testing.T) bool {
	t.Helper()
	for _, e := range s.history(t, s.request()) {
		if e.GetEventType() == enumspb.EVENT_TYPE_MARKER_RECORDED {
			return true
		}
	}
	return false
}

// What is over stays over: cancel, terminate and retry-now find nothing, and a
// run that is set back reads from the row that there is nothing to do.
func TestADeliveredRequestIsNotSentAgainFromTheWebUI(t *testing.T) {
	t.Parallel()
	l := newLane(t, patient(backoff.String()))
	for what, which := range map[string]func([]int64) int64{"first": first, "last": last} {
		for name, reach := range map[string]func(*testing.T, ground) *story{"": duringPOST, " of a fast one": duringFastPOST} {
			t.Run(what+" task"+name, func(t *testing.T) {
				t.Parallel()
				s := reach(t, ground{lane: l})
				s.goOn()
				s.endsWell(t)
				before := row(t, s.Site, s.row.PHID)
				// The server takes a late cancel for one that came in time.
				if err := s.Temporal.CancelWorkflow(t.Context(), s.request(), ""); err != nil {
					t.Error(err)
				}
				if s.Temporal.TerminateWorkflow(t.Context(), s.request(), "", "late") == nil ||
					s.Temporal.SignalWorkflow(t.Context(), s.request(), "", "retry-now", nil) == nil {
					t.Error("a closed run took a word")
				}
				closed := s.run(t)
				s.mustReset(t, s.request(), which)
				if ended := outcome(t, s.Site, s.row); ended != "delivered" {
					t.Errorf("the new run ended %q", ended)
				}
				if s.run(t) == closed {
					t.Error("there is no new run")
				}
				s.endsWell(t)
				if got := row(t, s.Site, s.row.PHID); got != before {
					t.Errorf("the row changed from %+v to %+v", before, got)
				}
			})
		}
	}
}
