package main

import (
	"context"
	"fmt"
	"time"
)

// How long a process is left alone before it is watched: locks are taken and
// hooks' workflows made; beside many rows also the first minute is over, in
// which the last 5,000 ids are read each second.
const (
	settleFor   = 5 * time.Second
	settleAmong = 65 * time.Second
)

// String says what a second of this cost.
func (s spent) String() string {
	per := func(n int64) float64 { return float64(n) / s.took.Seconds() }
	return fmt.Sprintf("serve %.1f %% of a core, database %.1f %%, Temporal %.1f %%, %.0f statements/s, %.0f rows read/s",
		s.share(s.serve), s.share(s.database), s.share(s.temporal), per(s.statements), per(s.reads))
}

// watch looks at a process that has nothing to do.
func (s *stack) watch(ctx context.Context, q *queue, p *process, settle time.Duration) (spent, error) {
	m := meter{stack: s, db: q.db, processes: []*process{p}}
	time.Sleep(settle)
	before, err := m.read(ctx)
	if err != nil {
		return spent{}, err
	}
	select {
	case <-time.After(s.window):
	case <-ctx.Done():
		return spent{}, ctx.Err()
	}
	return m.since(ctx, before)
}

// finished is a row of a week in which most calls succeeded, some failed and
// some hooks were misconfigured: what stays in the table until it is collected.
func finished(i int) row {
	r := row{hook: i, object: healthy, retry: "never", status: "sent", result: "okay", epoch: 1_700_000_000 + int64(i)}
	switch i % 20 {
	case 0:
		r.status, r.result = "failed", "fail"
	case 1:
		r.status, r.result, r.epoch = "failed", "none", 0
	}
	return r
}

// idles measures a process with nothing to do beside many finished rows.
func (s *stack) idles(ctx context.Context) error {
	fmt.Printf("%d finished rows (90 %% sent, 5 %% failed, 5 %% failed by configuration), no index on status; wanted serve below 2 %% with 10 hooks\n", s.terminal)
	for _, hooks := range []int{10, 2000} {
		q, err := s.newQueue(ctx, hooks, 0)
		if err != nil {
			return err
		}
		if err := q.fill(ctx, s.terminal, finished); err != nil {
			return err
		}
		if err := s.idleBeside(ctx, q); err != nil {
			return err
		}
		q.close()
	}
	return nil
}

func (s *stack) idleBeside(ctx context.Context, q *queue) error {
	p, err := s.launch(ctx, q)
	if err != nil {
		return err
	}
	// A row a hook: all hooks are owned and their workflows made.
	if err := s.deliver(ctx, q, len(q.hooks)); err != nil {
		return err
	}
	rest, err := s.watch(ctx, q, p, settleAmong)
	if err != nil {
		return err
	}
	highest, now := peak(p.cmd.Process.Pid)
	fmt.Printf("%5d hooks: %s; serve %.0f MiB, %.0f at most\n", len(q.hooks), rest, now, highest)
	_, err = p.stop()
	return err
}
