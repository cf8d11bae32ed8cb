// Package worker is where concrete things meet: it registers workflows and
// activities with Temporal, owns hooks through Phorge's locks, and gives the
// activities the databases and the way out. Nothing below it knows how many
// processes there are; nothing here decides over time.
package worker

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"waybill/activities"
	"waybill/workflows"
)

// Sizes of polling. Eager start fails silently when pollers hold all slots for
// workflow tasks, so there are many more slots than pollers (docs/performance.md).
const (
	// leastPollers and mostPollers bound the polls open on each of the two queues
	// of workflow tasks, that of runs in the cache and that of all others (ADR 0010).
	leastPollers = 4
	mostPollers  = 16
	ownerPollers = 4
	// cachedRuns bounds the memory of sleeping workflows, some 25 KiB each.
	cachedRuns = 1000
)

// Options say how the Temporal workers run.
type Options struct {
	Client client.Client
	// Shared is the installation's task queue, Queue this process's own.
	Shared, Queue string
	// MaxInFlight and MaxSlow are the bounds on attempts; tasks need as much room.
	MaxInFlight, MaxSlow int
	// Stop bounds an orderly stop of each worker: a whole exchange, its write
	// and a margin.
	Stop time.Duration
}

// Workers poll Temporal: one for workflow tasks and for activities that any
// process may run, one for the tasks that only the owner of a hook may run.
type Workers struct {
	shared, owner sdk.Worker
}

// New registers everything with two workers that do not run yet.
func New(o Options, h *activities.Herald) *Workers {
	slots := 2*mostPollers + 2*(o.MaxInFlight+o.MaxSlow)
	shared := sdk.New(o.Client, o.Shared, sdk.Options{
		WorkflowTaskPollerBehavior: sdk.NewPollerBehaviorAutoscaling(sdk.PollerBehaviorAutoscalingOptions{
			InitialNumberOfPollers: leastPollers, MinimumNumberOfPollers: leastPollers, MaximumNumberOfPollers: mostPollers,
		}),
		MaxConcurrentWorkflowTaskExecutionSize: max(slots, 200),
		WorkerStopTimeout:                      o.Stop,
	})
	shared.RegisterWorkflowWithOptions(workflows.Request, workflow.RegisterOptions{Name: "Request"})
	shared.RegisterWorkflowWithOptions(workflows.Hook, workflow.RegisterOptions{Name: "Hook"})
	register(shared, map[string]any{
		"Claim": h.Claim, "Send": h.Send, "WriteBack": h.WriteBack,
		"Pause": h.Pause, "Resume": h.Resume, "Paused": h.Paused,
	})
	owner := sdk.New(o.Client, o.Queue, sdk.Options{
		DisableWorkflowWorker:              true,
		MaxConcurrentActivityTaskPollers:   ownerPollers,
		MaxConcurrentActivityExecutionSize: 2 * (o.MaxInFlight + o.MaxSlow),
		WorkerStopTimeout:                  o.Stop,
	})
	register(owner, map[string]any{"Claim": h.Claim, "Send": h.Send})
	sdk.SetStickyWorkflowCacheSize(cachedRuns)
	return &Workers{shared: shared, owner: owner}
}

// register gives activities the names that their method references have.
func register(w sdk.Worker, methods map[string]any) {
	for name, method := range methods {
		w.RegisterActivityWithOptions(method, activity.RegisterOptions{Name: name})
	}
}

// Start begins to poll. An error means that Temporal refused.
func (w *Workers) Start() error {
	if err := w.owner.Start(); err != nil {
		return fmt.Errorf("start the owner's worker: %w", err)
	}
	if err := w.shared.Start(); err != nil {
		w.owner.Stop()
		return fmt.Errorf("start the shared worker: %w", err)
	}
	return nil
}

// Stop lets what runs end and stops polling.
func (w *Workers) Stop() {
	w.owner.Stop()
	w.shared.Stop()
}
