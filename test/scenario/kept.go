package scenario

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// Kept is a success that stands in a workflow's history: whatever becomes of its
// process and of the database, it is known.
type Kept struct {
	Row string
	At  time.Time
}

// requestPrefix is what the ids of requests' workflows begin with.
const requestPrefix = "request/"

// Kept reads the successes out of the histories of all requests' runs.
func (s *Site) Kept(t testing.TB) (all []Kept) {
	t.Helper()
	var page []byte
	for {
		res, err := s.Temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			NextPageToken: page, Query: "WorkflowType = 'Request'",
		})
		if err != nil {
			t.Fatalf("scenario: %v", err)
		}
		for _, e := range res.GetExecutions() {
			row := strings.TrimPrefix(e.GetExecution().GetWorkflowId(), requestPrefix)
			for _, at := range s.successes(t, e.GetExecution()) {
				all = append(all, Kept{Row: row, At: at})
			}
		}
		if page = res.GetNextPageToken(); len(page) == 0 {
			return all
		}
	}
}

// successes are the times at which a run's sends were known to have succeeded.
func (s *Site) successes(t testing.TB, run *commonpb.WorkflowExecution) (at []time.Time) {
	t.Helper()
	scheduled := map[int64]string{} // activities by the event that ordered them
	events := s.Temporal.GetWorkflowHistory(t.Context(), run.GetWorkflowId(), run.GetRunId(), false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			t.Fatalf("scenario: history of %s: %v", run.GetWorkflowId(), err)
		}
		if ordered := event.GetActivityTaskScheduledEventAttributes(); ordered != nil {
			scheduled[event.GetEventId()] = ordered.GetActivityType().GetName()
		}
		if success(event, scheduled) {
			at = append(at, event.GetEventTime().AsTime())
		}
	}
	return at
}

// sendActivity is the activity that makes calls.
const sendActivity = "Send"

// success says whether an event is the answer of a send, made inside a workflow
// task or as a task of its own, and says that the receiver took the call.
func success(event *historypb.HistoryEvent, scheduled map[int64]string) bool {
	if done := event.GetActivityTaskCompletedEventAttributes(); done != nil {
		return scheduled[done.GetScheduledEventId()] == sendActivity && took(done.GetResult())
	}
	details := event.GetMarkerRecordedEventAttributes().GetDetails()
	var local struct{ ActivityType string }
	for _, p := range details["data"].GetPayloads() {
		_ = json.Unmarshal(p.GetData(), &local)
	}
	return local.ActivityType == sendActivity && took(details["result"])
}

// took reads a send's answer: the result stands in the row, or is on its way.
func took(answer *commonpb.Payloads) bool {
	for _, p := range answer.GetPayloads() {
		var result struct {
			State     string
			Row       struct{ Status string }
			Unwritten struct{ Verdict struct{ Status string } }
		}
		_ = json.Unmarshal(p.GetData(), &result)
		if result.State == "recorded" && result.Row.Status == "sent" ||
			result.State == "unwritten" && result.Unwritten.Verdict.Status == "sent" {
			return true
		}
	}
	return false
}

// keptAlready: nobody of Waybill's calls for a row whose success stands in a
// history, but for the stated limit.
func (v *Verdict) keptAlready(e Evidence, calls map[string][]Call) {
	for _, k := range e.Kept {
		for _, c := range calls[k.Row] {
			if c.Caller == ByWaybill && c.Start.After(k.At) && !e.standing(c) {
				v.wrong("double: the success of row %s stood in its history at %s, and %s was called again by %d at %s",
					k.Row, clock(k.At), c.Hook, c.PID, clock(c.Start))
			}
		}
	}
}

// OpenRequests are the ids of requests' workflows that are running.
func (s *Site) OpenRequests(t testing.TB) (ids []string) {
	t.Helper()
	res, err := s.Temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Query: "WorkflowType = 'Request' AND ExecutionStatus = 'Running'",
	})
	if err != nil {
		t.Fatalf("scenario: %v", err)
	}
	for _, e := range res.GetExecutions() {
		ids = append(ids, e.GetExecution().GetWorkflowId())
	}
	return ids
}
