package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// meanGap is the mean time between single rows on the idle system.
const meanGap = 400 * time.Millisecond

// latency measures single rows on an idle system as it comes.
func (s *stack) latency(ctx context.Context) error {
	fmt.Printf("%d single rows, commit to call; wanted p50 90 ms, p99 200 ms; recorded elsewhere: Phorge's worker 590 / 960, gorge-webhook 482 / 998\n", s.idle)
	return s.poll(ctx, 100*time.Millisecond)
}

// polls measures what looking more often than by default brings, and costs.
func (s *stack) polls(ctx context.Context) error {
	for _, every := range []time.Duration{50 * time.Millisecond, 25 * time.Millisecond, 10 * time.Millisecond} {
		if err := s.poll(ctx, every); err != nil {
			return err
		}
	}
	return nil
}

// poll measures one interval: the latency of single rows, then the cost of
// nothing happening.
func (s *stack) poll(ctx context.Context, every time.Duration) error {
	q, err := s.newQueue(ctx, 1, 0)
	if err != nil {
		return err
	}
	defer q.close()
	p, err := s.launch(ctx, q, "WAYBILL_HERALD_POLL_INTERVAL="+every.String())
	if err != nil {
		return err
	}
	if err := s.deliver(ctx, q, 5); err != nil {
		return err
	}
	var took []time.Duration
	for range s.idle {
		// Arrivals at random moments, so that they do not beat with the poll.
		time.Sleep(time.Duration(rand.ExpFloat64() * float64(meanGap))) //nolint:gosec // no secret
		began := s.now()
		if err := s.deliver(ctx, q, 1); err != nil {
			return err
		}
		took = append(took, s.now().Sub(began))
	}
	rest, err := s.watch(ctx, q, p, settleFor)
	if err != nil {
		return err
	}
	if _, err := p.stop(); err != nil {
		return err
	}
	slices.Sort(took)
	fmt.Printf("poll every %5v: p50 %v, p99 %v, max %v; idle %s\n", every, took[len(took)/2].Round(time.Millisecond),
		took[len(took)*99/100].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), rest)
	return nil
}
