package main

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"waybill/workflows"
)

// Bounds of asking Temporal about one request: the row is worth showing soon,
// and of many runs the latest ones tell the story.
const (
	detailsWithin = 2 * time.Second
	runsShown     = 10
)

// workflowView is what Temporal knows of a request.
type workflowView struct {
	ID string `json:"id"`
	// Away is why Temporal could not be asked; then nothing else is known.
	Away    *string   `json:"away"`
	Open    bool      `json:"open"`
	Details *string   `json:"details"` // of the open run, from its worker
	Runs    []runView `json:"runs"`
}

// metadataQuery is answered by every workflow of the SDK, with its details.
const metadataQuery = "__temporal_workflow_metadata"

// runView is one run of the workflow. Outcome, attempts and reason are its
// result's, and so missing while it is open or where it was ended from outside.
type runView struct {
	RunID    string     `json:"run_id"`
	Status   string     `json:"status"`
	Started  time.Time  `json:"started_at"`
	Closed   *time.Time `json:"closed_at"`
	Outcome  string     `json:"outcome,omitempty"`
	Attempts int        `json:"attempts"`
	Reason   string     `json:"reason,omitempty"`
}

// askTemporal never fails: what cannot be had is said in the answer.
func askTemporal(ctx context.Context, j job, phid string) workflowView {
	ctx, cancel := context.WithTimeout(ctx, temporalWithin)
	defer cancel()
	v := workflowView{ID: workflows.RequestID(phid), Runs: []runView{}}
	c, err := dialTemporal(ctx, j)
	if err == nil {
		defer c.Close()
		err = v.ask(ctx, c)
	}
	if err != nil {
		away := temporalAway(j, err).Error()
		v = workflowView{ID: v.ID, Away: &away, Runs: []runView{}}
	}
	return v
}

// askable are the ids that may stand in a query as they are.
var askable = regexp.MustCompile(`^request/[A-Za-z0-9-]+$`)

func (v *workflowView) ask(ctx context.Context, c client.Client) error {
	open, err := c.DescribeWorkflow(ctx, v.ID, "")
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		return nil
	}
	if err != nil {
		return err
	}
	v.Open = open.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	if v.Open {
		v.Details = details(ctx, c, v.ID)
	}
	if !askable.MatchString(v.ID) {
		return nil
	}
	list, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: "WorkflowId = '" + v.ID + "'", PageSize: runsShown,
	})
	if err != nil {
		return err
	}
	for _, e := range list.GetExecutions()[:min(len(list.GetExecutions()), runsShown)] {
		v.Runs = append(v.Runs, viewRun(ctx, c, e))
	}
	return nil
}

// details are what the open run shows in the Web UI. They come from a worker,
// and there may be none.
func details(ctx context.Context, c client.Client, id string) *string {
	ctx, cancel := context.WithTimeout(ctx, detailsWithin)
	defer cancel()
	answer, err := c.QueryWorkflow(ctx, id, "", metadataQuery)
	var m sdkpb.WorkflowMetadata
	if err != nil || answer.Get(&m) != nil || m.GetCurrentDetails() == "" {
		return nil
	}
	text := strings.Join(strings.Fields(m.GetCurrentDetails()), " ")
	return &text
}

func viewRun(ctx context.Context, c client.Client, e *workflowpb.WorkflowExecutionInfo) runView {
	r := runView{
		RunID: e.GetExecution().GetRunId(), Status: strings.ToLower(e.GetStatus().String()), Started: e.GetStartTime().AsTime(),
	}
	if e.GetCloseTime() != nil {
		closed := e.GetCloseTime().AsTime()
		r.Closed = &closed
	}
	if e.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		return r
	}
	var result workflows.RequestResult
	if c.GetWorkflow(ctx, e.GetExecution().GetWorkflowId(), r.RunID).Get(ctx, &result) == nil {
		r.Outcome, r.Attempts, r.Reason = string(result.Outcome), result.Attempts, result.Reason
	}
	return r
}

// lines says how the workflow stands, among the rest about the request.
func (v workflowView) lines(p *paragraph) {
	switch {
	case v.Away != nil:
		p.line("Workflow", *v.Away+". The row above is shown as it stands.")
	case v.Details != nil:
		p.line("Workflow", v.ID+", open: "+*v.Details)
	case v.Open:
		p.line("Workflow", v.ID+", open")
	case len(v.Runs) == 0:
		p.line("Workflow", v.ID+": no run is known to Temporal")
	default:
		p.line("Workflow", v.ID+", not open")
	}
}

// write puts out the runs, the latest first.
func (v workflowView) write(w io.Writer) error {
	if len(v.Runs) == 0 {
		return nil
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return v.table().write(w)
}

func (v workflowView) table() *table {
	t := &table{header: []string{"RUN STARTED", "ENDED", "STATUS", "OUTCOME", "ATTEMPTS", "REASON"}, all: "`--json`"}
	t.spare, t.least = []string{"REASON", "ATTEMPTS", "ENDED"}, map[string]int{"REASON": 12}
	for _, r := range v.Runs {
		closed := time.Time{}
		if r.Closed != nil {
			closed = *r.Closed
		}
		attempts := ""
		if r.Outcome != "" {
			attempts = count(int64(r.Attempts))
		}
		t.add(utc(r.Started), utc(closed), r.Status, r.Outcome, attempts, r.Reason)
	}
	return t
}
