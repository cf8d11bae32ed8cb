package main

import (
	"context"
	"fmt"
	"time"
)

// slowBy is what the receiver takes where the number of attempts in flight is
// the limit: 16 of them every 200 ms are 80 deliveries a second and process.
const (
	slowBy    = 200 * time.Millisecond
	slowHooks = 64
)

// twice shows what a second process brings where Temporal is not the limit.
func (s *stack) twice(ctx context.Context) error {
	fmt.Printf("receiver takes %v, %d hooks, %d rows, 16 in flight a process\n", slowBy, slowHooks, 2*s.rows)
	alone := 0.0
	for processes := 1; processes <= 2; processes++ {
		rate, err := s.together(ctx, processes)
		if err != nil {
			return err
		}
		if processes == 1 {
			alone = rate
		}
		fmt.Printf("%d serve: %.0f/s, %.2f of one\n", processes, rate, rate/alone)
	}
	return nil
}

func (s *stack) together(ctx context.Context, n int) (float64, error) {
	q, err := s.newQueue(ctx, slowHooks, slowBy)
	if err != nil {
		return 0, err
	}
	defer q.close()
	var all []*process
	for range n {
		p, err := s.launch(ctx, q)
		if err != nil {
			return 0, err
		}
		all = append(all, p)
	}
	if err := s.shared(ctx, q, n); err != nil {
		return 0, err
	}
	// One row a hook: both have called all of theirs and know how fast they are.
	if err := s.deliver(ctx, q, slowHooks); err != nil {
		return 0, err
	}
	began := s.now()
	if err := s.deliver(ctx, q, 2*s.rows); err != nil {
		return 0, err
	}
	took := s.now().Sub(began)
	for _, p := range all {
		if _, err := p.stop(); err != nil {
			return 0, err
		}
	}
	return float64(2*s.rows) / took.Seconds(), q.complete(ctx, 2*s.rows+slowHooks)
}

// shared waits until each process owns its part of the hooks.
func (s *stack) shared(ctx context.Context, q *queue, n int) error {
	ctx, cancel := context.WithTimeout(ctx, drainWithin)
	defer cancel()
	db, err := s.open(q.namespace + "_waybill")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for {
		var owners, least int
		err := db.QueryRowContext(ctx,
			"SELECT COUNT(*), COALESCE(MIN(n), 0) FROM (SELECT COUNT(*) n FROM hook_owner WHERE released_at IS NULL GROUP BY instance) o").Scan(&owners, &least)
		if err != nil {
			return err
		}
		if owners == n && least == slowHooks/n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d owners, the least with %d hooks", owners, least)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
