package starter

import (
	"context"
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/workflows"
)

// errOpen says that the row's workflow is running already: asleep or busy.
var errOpen = errors.New("the request's workflow is open")

// start starts a row's workflow.
func (s *Starter) start(ctx context.Context, c herald.Candidate) (client.WorkflowRun, error) {
	in := workflows.RequestInput{
		Ref: activities.Ref{ID: c.ID, PHID: c.PHID, HookPHID: c.HookPHID}, Attributes: s.cfg.Attributes,
	}
	run, err := s.cfg.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                                       workflows.RequestID(c.PHID),
		TaskQueue:                                workflows.TaskQueue,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		EnableEagerStart:                         true,
		TypedSearchAttributes:                    s.attributes(c.HookPHID),
		Priority:                                 temporal.Priority{FairnessKey: fairness(c.HookPHID)},
		StaticSummary:                            "Deliver " + c.PHID + " to " + c.HookPHID,
	}, workflows.Request, in)
	var open *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &open) {
		return nil, errOpen
	}
	return run, err
}

// announce makes sure that the hook's workflow exists.
func (s *Starter) announce(ctx context.Context, hook string) error {
	_, err := s.cfg.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       workflows.HookID(hook),
		TaskQueue:                workflows.TaskQueue,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		TypedSearchAttributes:    s.attributes(hook),
		StaticSummary:            "Hook " + hook + ": pause, resume, state",
	}, workflows.Hook, workflows.HookInput{PHID: hook, Attributes: s.cfg.Attributes})
	return err
}

// retire ends the workflow of a hook whose row is gone.
func (s *Starter) retire(ctx context.Context, hook string) {
	err := s.cfg.Temporal.SignalWorkflow(ctx, workflows.HookID(hook), "", workflows.SignalRetire, nil)
	var none *serviceerror.NotFound
	if err != nil && !errors.As(err, &none) {
		s.cfg.Log.Warn("hook is gone, but its workflow could not be told", zap.String("hook", hook), zap.Error(err))
	}
}

func (s *Starter) attributes(hook string) temporal.SearchAttributes {
	if !s.cfg.Attributes {
		return temporal.NewSearchAttributes()
	}
	return temporal.NewSearchAttributes(
		workflows.AttributeLane.ValueSet(workflows.LaneHerald),
		workflows.AttributeHook.ValueSet(hook),
	)
}

// maxFairness is the longest fairness key that Temporal takes, in bytes.
const maxFairness = 64

// fairness keeps one hook's backlog from delaying another's tasks.
func fairness(hook string) string { return hook[:min(len(hook), maxFairness)] }
