package starter

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/workflows"
)

// Times and sizes of announcing hooks.
const (
	// announceEvery is when a hook's workflow is made sure of again: somebody
	// may have terminated it, and signals need their target.
	announceEvery = 10 * time.Minute
	// doubtEvery is how often one hook is made sure of on behalf of all: a server
	// that lost its state between two questions answers like before.
	doubtEvery = 5 * time.Second
	// announceAtOnce bounds how many hooks are announced at once, and how many of
	// them may have nothing to send: thousands of idle hooks must not stand
	// between a start and its first deliveries.
	announceAtOnce = 8
	announceIdle   = 6
)

// cluster is what starting needs of Temporal.
type cluster interface {
	ExecuteWorkflow(ctx context.Context, o client.StartWorkflowOptions, workflow any, args ...any) (client.WorkflowRun, error)
	SignalWorkflow(ctx context.Context, workflowID, runID, signal string, arg any) error
	CountWorkflow(ctx context.Context, r *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error)
}

// errOpen says that the row's workflow is running already: asleep or busy.
var errOpen = errors.New("the request's workflow is open")

// start starts a row's workflow.
func (s *Starter) start(ctx context.Context, c herald.Candidate) (client.WorkflowRun, error) {
	ctx, span := s.cfg.Tracer.Start(ctx, "candidate", trace.WithAttributes(
		attribute.String("waybill.request", c.PHID), attribute.String("waybill.hook", c.HookPHID)))
	defer span.End()
	o := client.StartWorkflowOptions{
		ID:                                       workflows.RequestID(c.PHID),
		TaskQueue:                                s.cfg.TaskQueue,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		EnableEagerStart:                         true,
		Priority:                                 sdk.Priority{FairnessKey: fairness(c.HookPHID)},
		StaticSummary:                            "Deliver " + c.PHID + " to " + c.HookPHID,
	}
	run, err := s.execute(ctx, c.HookPHID, o, workflows.Request, func(attributes bool) any {
		ref := activities.Ref{ID: c.ID, PHID: c.PHID, HookPHID: c.HookPHID}
		return workflows.RequestInput{Ref: ref, Lease: s.cfg.AttemptWithin, Attributes: attributes}
	})
	var open *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &open) {
		return nil, errOpen
	}
	return run, err
}

// announce makes sure that the hook's workflow exists, and names its run. A hook
// with something to send does not wait behind those without.
func (s *Starter) announce(ctx context.Context, hook string, idle bool) (runID string, err error) {
	if idle {
		leave, err := enter(ctx, s.idling)
		if err != nil {
			return "", err
		}
		defer leave()
	}
	leave, err := enter(ctx, s.announcing)
	if err != nil {
		return "", err
	}
	defer leave()
	o := client.StartWorkflowOptions{
		ID:                       workflows.HookID(hook),
		TaskQueue:                s.cfg.TaskQueue,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "Hook " + hook + ": pause, resume, state",
	}
	run, err := s.execute(ctx, hook, o, workflows.Hook, func(attributes bool) any {
		return workflows.HookInput{PHID: hook, Attributes: attributes}
	})
	if err != nil {
		return "", err
	}
	return run.GetRunID(), nil
}

// enter waits for room.
func enter(ctx context.Context, room chan struct{}) (leave func(), err error) {
	select {
	case room <- struct{}{}:
		return func() { <-room }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// execute starts a workflow, without search attributes where the server does
// not know them: a delivery does not depend on how it is listed.
func (s *Starter) execute(ctx context.Context, hook string, o client.StartWorkflowOptions, w any, in func(attributes bool) any) (client.WorkflowRun, error) {
	with := s.attributes.Load()
	o.TypedSearchAttributes = attributes(hook, with)
	run, err := s.cfg.Temporal.ExecuteWorkflow(ctx, o, w, in(with))
	var invalid *serviceerror.InvalidArgument
	if with && errors.As(err, &invalid) {
		if s.attributes.CompareAndSwap(true, false) { // many find out at once
			s.cfg.Log.Warn("Temporal does not take the search attributes, starting without them")
		}
		return s.execute(ctx, hook, o, w, in)
	}
	s.heard(ctx, err)
	return run, err
}

// heard notes how Temporal answered. After an outage it may be another cluster,
// or the same one with its state lost: hooks are announced again.
func (s *Starter) heard(ctx context.Context, err error) {
	var open *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &open) {
		err = nil
	}
	if s.notes.note(ctx, theServer, err) {
		s.anotherLife()
	}
}

// register asks the server to know the search attributes, beside all else: it
// may take a while until they can be used.
func (s *Starter) register(ctx context.Context) {
	if s.cfg.Register == nil {
		return
	}
	s.group.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, registerEvery)
		defer cancel()
		if s.cfg.Register(ctx) == nil {
			s.attributes.Store(true)
			s.cfg.Log.Info("Temporal takes the search attributes")
		}
	})
}

// retire ends the workflow of a hook whose row is gone.
func (s *Starter) retire(ctx context.Context, hook string) error {
	err := s.cfg.Temporal.SignalWorkflow(ctx, workflows.HookID(hook), "", workflows.SignalRetire, nil)
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		err = nil
	}
	s.heard(ctx, err)
	return err
}

func attributes(hook string, with bool) sdk.SearchAttributes {
	if !with {
		return sdk.NewSearchAttributes()
	}
	return sdk.NewSearchAttributes(
		workflows.AttributeLane.ValueSet(workflows.LaneHerald),
		workflows.AttributeHook.ValueSet(hook),
	)
}

// maxFairness is the longest fairness key that Temporal takes, in bytes.
const maxFairness = 64

// fairness keeps one hook's backlog from delaying another's tasks.
func fairness(hook string) string { return hook[:min(len(hook), maxFairness)] }
