// Command bench measures, in one run and with one client, what a delivery
// costs: an empty workflow, a plain loop of claim, POST and write without
// Temporal, and `waybill serve`; the time from a row's commit to its call; what
// an idle process costs beside many finished rows; what depth and number of
// hooks change; what a second process brings; and memory in a flood. It prints
// the conditions with the figures. Machines differ and are shared, so what
// counts are the ratios within one run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"waybill/internal/devstack"
)

// options are what the command line can change.
type options struct {
	parts, depthList   string
	rows, idle, rounds int
	terminal, flood    int
	window, within     time.Duration
	waybill            string
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	var o options
	flag.StringVar(&o.parts, "parts", "rates,latency,polls,idle,depth,twice,flood", "what to measure, in this order")
	flag.StringVar(&o.depthList, "depths", "1000x10,10000x10,10000x1,10000x100", "queued rows and hooks of the part depth")
	flag.IntVar(&o.rows, "rows", 500, "rows for each figure")
	flag.IntVar(&o.rounds, "rounds", 5, "pairs of empty workflow and serve for each rate")
	flag.IntVar(&o.idle, "idle", 60, "single rows for each latency")
	flag.DurationVar(&o.window, "window", 30*time.Second, "how long an idle process is watched")
	flag.IntVar(&o.terminal, "terminal", 300_000, "finished rows beside which the idle process polls")
	flag.IntVar(&o.flood, "flood", 3_000, "queued rows of the flood, a tenth of which fail for ever")
	flag.DurationVar(&o.within, "within", 40*time.Minute, "bound of each flood; what was reached by then is told")
	flag.StringVar(&o.waybill, "waybill", "bin/waybill", "the program to measure")
	flag.Parse()
	if err := runAll(ctx, o, time.Now); err != nil {
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
	launched []*process // every serve, for the case that a measurement breaks off
}

// part is one thing that can be measured.
type part struct {
	name    string
	measure func(*stack, context.Context) error
}

func parts() []part {
	return []part{
		{"rates", (*stack).rates},
		{"latency", (*stack).latency},
		{"polls", (*stack).polls},
		{"idle", (*stack).idles},
		{"depth", (*stack).depths},
		{"twice", (*stack).twice},
		{"flood", (*stack).floods},
	}
}

// runAll measures the parts that were asked for, each on servers of its own, so
// that none stands on another's workflows.
func runAll(ctx context.Context, o options, now func() time.Time) error {
	known := parts()
	for name := range strings.SplitSeq(o.parts, ",") {
		i := slices.IndexFunc(known, func(p part) bool { return p.name == name })
		if i < 0 {
			return fmt.Errorf("there is no part %q", name)
		}
		if err := run(ctx, o, now, known[i]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func run(ctx context.Context, o options, now func() time.Time, p part) (err error) {
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
	fmt.Printf("\n# %s\n", p.name)
	if err := s.conditions(ctx); err != nil {
		return err
	}
	return p.measure(s, ctx)
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
	for _, p := range s.launched {
		_ = p.cmd.Process.Kill() // all but those of a broken measurement have ended
	}
	if s.temporal != nil {
		failures = append(failures, s.temporal.Stop(ctx))
	}
	if s.mariadb != nil {
		failures = append(failures, s.mariadb.Stop(ctx))
	}
	return errors.Join(failures...)
}
