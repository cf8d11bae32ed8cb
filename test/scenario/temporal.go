package scenario

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
)

// probeWithin bounds one question to a server that may be busy.
const probeWithin = 5 * time.Second

// RegisterNamespace makes the site's Temporal namespace again, on a server that
// has lost its state.
func (s *Site) RegisterNamespace(t testing.TB) {
	t.Helper()
	registerNamespace(t, s.TemporalAddress, s.TemporalNamespace)
	Until(t, 2*Patience, "a new Temporal namespace can be used", func() bool { return usable(t, s.Temporal) })
}

func registerNamespace(t testing.TB, address, namespace string) {
	t.Helper()
	admin, err := client.NewNamespaceClient(client.Options{HostPort: address, Logger: quiet()})
	if err != nil {
		t.Fatalf("scenario: %v", err)
	}
	defer admin.Close()
	Until(t, Patience, "a Temporal namespace is registered", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), probeWithin)
		defer cancel()
		err = admin.Register(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(retention),
		})
		var exists *serviceerror.NamespaceAlreadyExists
		return err == nil || errors.As(err, &exists)
	})
}

// usable asks the frontend, visibility and history by what a delivery uses of
// them: a workflow is started that nobody will ever run, and ended again.
func usable(t testing.TB, c client.Client) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), probeWithin)
	defer cancel()
	if _, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{}); err != nil {
		return false
	}
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "probe", TaskQueue: "probe"}, "probe")
	return err == nil && c.TerminateWorkflow(ctx, run.GetID(), run.GetRunID(), "probe") == nil
}

// Executions are the ids of all workflow runs whose id begins with prefix, one
// entry for each run, so that a hot loop shows as many.
func (s *Site) Executions(t testing.TB, prefix string) []string {
	t.Helper()
	var ids []string
	var page []byte
	for {
		res, err := s.Temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			NextPageToken: page, Query: "WorkflowId STARTS_WITH '" + prefix + "'",
		})
		if err != nil {
			t.Fatalf("scenario: %v", err)
		}
		for _, e := range res.GetExecutions() {
			ids = append(ids, e.GetExecution().GetWorkflowId())
		}
		if page = res.GetNextPageToken(); len(page) == 0 {
			return ids
		}
	}
}

// Open reports whether a workflow is running.
func (s *Site) Open(t testing.TB, id string) bool {
	t.Helper()
	res, err := s.Temporal.DescribeWorkflow(t.Context(), id, "")
	return err == nil && res.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// Closed reports whether a workflow has run and ended.
func (s *Site) Closed(t testing.TB, id string) bool {
	t.Helper()
	res, err := s.Temporal.DescribeWorkflow(t.Context(), id, "")
	return err == nil && res.Status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// Histories are the histories of all workflow runs as JSON, by workflow id and
// run id: everything that Temporal stores and shows about them, with the
// summaries and descriptions beside the events.
func (s *Site) Histories(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	var page []byte
	for {
		res, err := s.Temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{NextPageToken: page})
		if err != nil {
			t.Fatalf("scenario: %v", err)
		}
		for _, e := range res.GetExecutions() {
			all[e.GetExecution().GetWorkflowId()+" "+e.GetExecution().GetRunId()] = s.history(t, e.GetExecution())
		}
		if page = res.GetNextPageToken(); len(page) == 0 {
			return all
		}
	}
}

func (s *Site) history(t testing.TB, e *commonpb.WorkflowExecution) string {
	t.Helper()
	var text string
	events := s.Temporal.GetWorkflowHistory(t.Context(), e.GetWorkflowId(), e.GetRunId(), false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			t.Fatalf("scenario: history of %s: %v", e.GetWorkflowId(), err)
		}
		text += protojson.Format(event)
	}
	described, err := s.Temporal.DescribeWorkflow(t.Context(), e.GetWorkflowId(), e.GetRunId())
	if err != nil {
		t.Fatalf("scenario: description of %s: %v", e.GetWorkflowId(), err)
	}
	return text + protojson.Format(described.RawResponse)
}
