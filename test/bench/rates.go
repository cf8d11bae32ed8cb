package main

import (
	"context"
	"fmt"
	"slices"
)

// elsewhere are figures that were measured at another time on another machine,
// shown beside ours and never compared with them: Phorge's own worker (a PHP
// process for one hook, four for ten) and gorge-webhook with its defaults.
var elsewhere = map[int]string{
	1:   "Phorge's worker 87/s, gorge-webhook 8/s",
	10:  "Phorge's workers 95/s, gorge-webhook 8/s",
	100: "gorge-webhook 8/s",
}

// The least ratio of serve to empty workflows that is wanted: with one hook the
// rows go one after another, and what is beside the workflow adds up.
var wanted = map[int]float64{1: 0.6, 10: 0.7, 100: 0.7}

// rates measures empty workflows and serve in turn, several rounds of each, so
// that both meet the same machine, and tells the medians.
func (s *stack) rates(ctx context.Context) error {
	fmt.Printf("%d rows a figure, %d rounds; receiver on loopback answers 200 at once; 16 at a time at most\n\n", s.rows, s.rounds)
	fmt.Printf("%6s  %8s  %8s  %8s  %22s  %6s  %11s  %s\n",
		"hooks", "empty/s", "plain/s", "serve/s", "serve/empty (rounds)", "wanted", "serve CPU", "recorded elsewhere")
	for _, hooks := range []int{1, 10, 100} {
		plain, err := s.plainLoop(ctx, hooks)
		if err != nil {
			return fmt.Errorf("plain loop: %w", err)
		}
		var empty, serve, ratio, cpu []float64
		for range s.rounds {
			e, err := s.emptyWorkflows(ctx, hooks)
			if err != nil {
				return fmt.Errorf("empty workflows: %w", err)
			}
			f, err := s.serve(ctx, hooks)
			if err != nil {
				return fmt.Errorf("serve: %w", err)
			}
			empty, serve, ratio, cpu = append(empty, e), append(serve, f.rate), append(ratio, f.rate/e), append(cpu, f.cpu)
		}
		fmt.Printf("%6d  %8.0f  %8.0f  %8.0f  %4.2f %17.2f  %6.1f  %8.1f ms  %s\n", hooks, median(empty), plain, median(serve),
			median(ratio), ratio, wanted[hooks], median(cpu), elsewhere[hooks])
	}
	fmt.Printf("load %s, beside %s\n", load(), others())
	return nil
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
