// Command bench measures, in one run and with one client, what a delivery
// costs: an empty workflow, a plain loop of claim, POST and write without
// Temporal, and `waybill serve`, each for rows over one, ten and a hundred
// hooks, and the time from a row's commit to its call on an idle system. It
// prints the conditions with the figures. Machines differ and are shared, so
// what counts are the ratios within one run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"waybill/internal/devstack"
)

// options are what the command line can change.
type options struct {
	rows, idle int
	waybill    string
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	var o options
	flag.IntVar(&o.rows, "rows", 500, "rows for each figure")
	flag.IntVar(&o.idle, "idle", 60, "single rows for the idle latency")
	flag.StringVar(&o.waybill, "waybill", "bin/waybill", "the program to measure")
	flag.Parse()
	if err := run(ctx, o, time.Now); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// stack is what everything is measured on.
type stack struct {
	options
	dir      string
	now      func() time.Time
	mariadb  *devstack.MariaDB
	temporal *devstack.Temporal
}

func run(ctx context.Context, o options, now func() time.Time) (err error) {
	dir, err := os.MkdirTemp("", "waybill-bench-")
	if err != nil {
		return err
	}
	s := &stack{options: o, dir: dir, now: now}
	defer func() { err = errors.Join(err, s.stop(), os.RemoveAll(dir)) }()
	if s.waybill, err = filepath.Abs(o.waybill); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	if err := s.conditions(ctx); err != nil {
		return err
	}
	return s.measure(ctx)
}

// start runs the servers as `make run` does; results are flushed at commit.
func (s *stack) start(ctx context.Context) (err error) {
	bin, err := devstack.FindTemporal(os.Getenv)
	if err != nil {
		return err
	}
	if s.mariadb, err = devstack.StartMariaDB(ctx, devstack.MariaDBConfig{Dir: filepath.Join(s.dir, "mariadb")}); err != nil {
		return err
	}
	s.temporal, err = devstack.StartTemporal(ctx, devstack.TemporalConfig{Bin: bin, Dir: filepath.Join(s.dir, "temporal")})
	return err
}

func (s *stack) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var failures []error
	if s.temporal != nil {
		failures = append(failures, s.temporal.Stop(ctx))
	}
	if s.mariadb != nil {
		failures = append(failures, s.mariadb.Stop(ctx))
	}
	return errors.Join(failures...)
}

// measure prints one line per number of hooks, then the latency.
func (s *stack) measure(ctx context.Context) error {
	fmt.Printf("\n%6s  %16s  %16s  %16s  %13s  %11s\n", "hooks", "empty workflow/s", "plain loop/s", "waybill serve/s", "serve / empty", "serve CPU")
	for _, hooks := range []int{1, 10, 100} {
		empty, err := s.emptyWorkflows(ctx, hooks)
		if err != nil {
			return fmt.Errorf("empty workflows: %w", err)
		}
		plain, err := s.plainLoop(ctx, hooks)
		if err != nil {
			return fmt.Errorf("plain loop: %w", err)
		}
		serve, err := s.serve(ctx, hooks)
		if err != nil {
			return fmt.Errorf("serve: %w", err)
		}
		fmt.Printf("%6d  %16.0f  %16.0f  %16.0f  %13.2f  %8.1f ms\n", hooks, empty, plain, serve.rate, serve.rate/empty, serve.cpu)
	}
	return s.idleLatency(ctx)
}
