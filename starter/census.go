package starter

import (
	"context"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"waybill/internal/herald"
)

// censusEvery is how often the running workflows of hooks are counted: one
// question, however many hooks there are.
const censusEvery = 30 * time.Second

// census makes sure of all hooks again when fewer of their workflows run than
// there are hooks: somebody has ended one, and a signal would find no target. The
// count lags behind, so only one that stays short from look to look counts, and
// each number once: a server may have a reason of its own for it. One that
// cannot be asked leaves it to announceEvery.
func (s *Starter) census(ctx context.Context) {
	res, err := s.cfg.Temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Query: "WorkflowType = 'Hook' AND ExecutionStatus = 'Running' AND TaskQueue = '" + s.cfg.TaskQueue + "'",
	})
	if err != nil {
		return
	}
	n := res.GetCount()
	before := s.counted
	s.counted = n
	switch {
	case n >= s.announceable():
		s.acted = -1
	case n == before && n != s.acted:
		s.acted = n
		s.lives.Add(1)
	}
}

// announceable counts the hooks that should have a workflow.
func (s *Starter) announceable() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for hook := range s.known {
		if herald.Speakable(hook) {
			n++
		}
	}
	return n
}
