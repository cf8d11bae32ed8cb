package starter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/durationpb"

	"waybill/internal/devstack/stacktest"
	"waybill/internal/herald"
	"waybill/workflows"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

// real is a starter on a real server, without workers: what it starts stays open.
func real(t *testing.T) (*Starter, client.Client) {
	t.Helper()
	c := stacktest.Client(t)
	return New(Config{Temporal: c, TaskQueue: "waybill-test", Attributes: true, Log: zap.NewNop(), Clock: time.Now}), c
}

func candidate(t *testing.T) herald.Candidate {
	t.Helper()
	return herald.Candidate{ID: 7, PHID: stacktest.Name("PHID-HWBR"), HookPHID: stacktest.Name("PHID-HWBH")}
}

func TestStartOnARealServer(t *testing.T) {
	s, c := real(t)
	row := candidate(t)
	run, err := s.start(t.Context(), row)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.start(t.Context(), row); !errors.Is(err, errOpen) {
		t.Errorf("a second start: %v", err)
	}
	d, err := c.DescribeWorkflow(t.Context(), run.GetID(), run.GetRunID())
	if err != nil {
		t.Fatal(err)
	}
	info := d.RawResponse.GetWorkflowExecutionInfo()
	if info.GetExecution().GetWorkflowId() != "request/"+row.PHID || info.GetTaskQueue() != "waybill-test" {
		t.Errorf("%s on %s", info.GetExecution().GetWorkflowId(), info.GetTaskQueue())
	}
	set := info.GetSearchAttributes().GetIndexedFields()
	if got := string(set["WaybillHook"].GetData()); got != `"`+row.HookPHID+`"` {
		t.Errorf("WaybillHook is %s", got)
	}
	if got := string(set["WaybillLane"].GetData()); got != `"herald"` {
		t.Errorf("WaybillLane is %s", got)
	}
	if got := info.GetPriority().GetFairnessKey(); got != row.HookPHID {
		t.Errorf("fairness key %q", got)
	}
	// A run that has ended is no obstacle.
	if err := c.TerminateWorkflow(t.Context(), run.GetID(), "", "test"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.start(t.Context(), row); err != nil {
		t.Errorf("after its end: %v", err)
	}
}

func TestAnnounceAndRetireOnARealServer(t *testing.T) {
	s, c := real(t)
	hook := stacktest.Name("PHID-HWBH")
	id := workflows.HookID(hook)
	if err := s.retire(t.Context(), hook); err != nil {
		t.Errorf("retiring a hook without a workflow: %v", err)
	}
	for range 2 {
		if _, err := s.announce(t.Context(), hook, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.retire(t.Context(), hook); err != nil {
		t.Error(err)
	}
	history := c.GetWorkflowHistory(t.Context(), id, "", false, 0)
	var kinds []string
	for history.HasNext() {
		e, err := history.Next()
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, strings.TrimPrefix(e.GetEventType().String(), "WorkflowExecution"))
	}
	// Announcing twice has left no trace in the history.
	if got := strings.Join(kinds, " "); got != "Started WorkflowTaskScheduled Signaled" {
		t.Errorf("events %s", got)
	}
}

// What a server says that does not know the attributes is what execute expects.
func TestUnknownAttributesOnARealServer(t *testing.T) {
	_, known := real(t)
	namespace := stacktest.Name("bare")
	_, err := known.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewClientFromExisting(known, client.Options{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Temporal: c, TaskQueue: "waybill-test", Attributes: true, Log: zap.NewNop(), Clock: time.Now})
	// The server's other parts hear of a namespace with a delay.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, err = s.announce(ctx, "PHID-HWBH-x", false); err != nil && ctx.Err() == nil; _, err = s.announce(ctx, "PHID-HWBH-x", false) {
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil || s.attributes.Load() {
		t.Errorf("announced: %v, with attributes: %v", err, s.attributes.Load())
	}
	if _, err := s.start(ctx, candidate(t)); err != nil {
		t.Error(err)
	}
}

func TestFairnessKeysFit(t *testing.T) {
	for length, want := range map[int]int{0: 0, 30: 30, 64: 64, 65: 64, 200: 64} {
		if got := len(fairness(strings.Repeat("x", length))); got != want {
			t.Errorf("a key of %d bytes for a PHID of %d", got, length)
		}
	}
}
