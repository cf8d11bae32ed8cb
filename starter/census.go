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

// lifeEvery is how often all hooks are made sure of at most.
const lifeEvery = time.Minute

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
		s.anotherLife()
	}
}

// anotherLife has all hooks made sure of, at most once in lifeEvery: under load a
// server may fail and answer again every few seconds, and a question for each
// of thousands of hooks would be all that it gets done.
func (s *Starter) anotherLife() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Clock()
	if s.lifeDue = now.Sub(s.lifeBegan) < lifeEvery; s.lifeDue {
		return
	}
	s.lifeBegan = now
	s.lives.Add(1)
}

// dueLife begins the life that had to wait.
func (s *Starter) dueLife() {
	s.mu.Lock()
	due := s.lifeDue && s.cfg.Clock().Sub(s.lifeBegan) >= lifeEvery
	s.mu.Unlock()
	if due {
		s.anotherLife()
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
