package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"waybill/internal/egress"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/internal/signature"
)

// atATime is how many deliveries are in flight at most, for every subject.
const atATime = 16

// emptyWorkflows is the most that this Temporal gives: workflows that do
// nothing, started eagerly and waited for, as many at a time as there are
// hooks.
func (s *stack) emptyWorkflows(ctx context.Context, hooks int) (float64, error) {
	c, err := s.dial(ctx)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	queue := fmt.Sprintf("empty-%d", hooks)
	w := worker.New(c, queue, worker.Options{MaxConcurrentWorkflowTaskPollers: 8})
	empty := func(workflow.Context) error { return nil }
	w.RegisterWorkflowWithOptions(empty, workflow.RegisterOptions{Name: "empty"})
	if err := w.Start(); err != nil {
		return 0, err
	}
	defer w.Stop()
	if err := s.settle(ctx); err != nil {
		return 0, err
	}
	return s.rate(min(hooks, atATime), func(int) error {
		run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: queue, EnableEagerStart: true}, "empty")
		if err != nil {
			return err
		}
		return run.Get(ctx, nil)
	})
}

// rate does as many steps as there are rows, some at a time.
func (s *stack) rate(lanes int, step func(i int) error) (float64, error) {
	work := make(chan int)
	failed := make(chan error, lanes)
	var group sync.WaitGroup
	began := s.now()
	for range lanes {
		group.Go(func() {
			for i := range work {
				if err := step(i); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for i := range s.rows {
		work <- i
	}
	close(work)
	group.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
		return float64(s.rows) / s.now().Sub(began).Seconds(), nil
	}
}

// plainLoop does what a delivery needs without Temporal and without any of its
// promises: read, claim, POST, write, one row of a hook at a time.
func (s *stack) plainLoop(ctx context.Context, hooks int) (float64, error) {
	q, err := s.newQueue(ctx, hooks, 0)
	if err != nil {
		return 0, err
	}
	defer q.close()
	rows, err := heralddb.Open(heralddb.Config{
		DSN: q.dsn, Namespace: q.namespace, Lease: 30 * time.Second, Backoff: time.Minute, BreakerThreshold: 10, Clock: s.now,
	})
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	p := plain{rows: rows, out: egress.New(egress.Config{Policy: egress.NewPolicy(nil, nil), Now: s.now})}
	if err := q.insert(ctx, s.rows); err != nil {
		return 0, err
	}
	lines := make(chan string, len(q.hooks))
	for _, h := range q.hooks {
		lines <- h
	}
	close(lines)
	began := s.now()
	if err := p.drain(ctx, lines); err != nil {
		return 0, err
	}
	return float64(s.rows) / s.now().Sub(began).Seconds(), nil
}

// plain is the loop's way in and out.
type plain struct {
	rows *heralddb.DB
	out  *egress.Client
}

// drain empties the lines, sixteen at a time.
func (p plain) drain(ctx context.Context, lines <-chan string) error {
	failed := make(chan error, atATime)
	var group sync.WaitGroup
	for range atATime {
		group.Go(func() {
			for hook := range lines {
				if err := p.line(ctx, hook); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// line delivers one hook's rows, oldest first.
func (p plain) line(ctx context.Context, hook string) error {
	for {
		heads, err := p.rows.Heads(ctx, hook, 32)
		if err != nil || len(heads) == 0 {
			return err
		}
		for _, c := range heads {
			if err := p.deliver(ctx, c.ID); err != nil {
				return err
			}
		}
	}
}

func (p plain) deliver(ctx context.Context, id uint64) error {
	snap, err := p.rows.Load(ctx, id)
	if err != nil {
		return err
	}
	props, err := herald.ParseProperties(snap.Request.Properties)
	if err != nil {
		return err
	}
	target, err := herald.ParseURI(snap.Hook.URI)
	if err != nil {
		return err
	}
	claim, won, err := p.rows.Claim(ctx, id, snap.Request.Modified, herald.Lock{})
	if err != nil || !won {
		return fmt.Errorf("claim: won %v, %w", won, err)
	}
	body := herald.Document(snap.Request, props, props.TransactionPHIDs())
	out := p.out.Post(ctx, egress.Call{
		Scheme: target.Scheme, Host: target.Host, Hostname: target.Hostname, Port: fmt.Sprint(target.Port),
		RequestTarget: target.RequestTarget, Body: body, Header: header(signature.Phorge(snap.Hook.HMACKey, body)),
	})
	v := herald.Decide(herald.Answer{HTTPStatus: out.Status}, false)
	_, err = p.rows.Finish(ctx, herald.ResultWrite{
		Claim: claim, Verdict: v, Properties: props.WithError(v.ErrorType, v.Code), Epoch: herald.EpochNow,
	})
	return err
}
