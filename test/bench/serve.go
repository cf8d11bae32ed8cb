package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Bounds of waiting for the subject.
const (
	readyWithin = time.Minute
	drainWithin = 5 * time.Minute
	stopWithin  = time.Minute
	// meanGap is the mean time between single rows on the idle system.
	meanGap = 400 * time.Millisecond
)

// figure is what one run of serve comes to: deliveries a second, and CPU of the
// process per delivery in milliseconds.
type figure struct{ rate, cpu float64 }

// process is a running `waybill serve`.
type process struct {
	cmd    *exec.Cmd
	listen string
}

// launch starts serve on a queue and waits until it is ready.
func (s *stack) launch(ctx context.Context, q *queue) (*process, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &process{listen: listener.Addr().String()}
	_ = listener.Close()
	log, err := os.Create(filepath.Join(s.dir, q.namespace+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), s.waybill, "serve")
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = []string{
		"WAYBILL_HERALD_DSN=" + q.dsn, "WAYBILL_DSN=" + s.mariadb.DSN(q.namespace+"_waybill"),
		"WAYBILL_TEMPORAL_ADDRESS=" + s.temporal.Addr(), "WAYBILL_TEMPORAL_NAMESPACE=" + s.temporal.Namespace(),
		"WAYBILL_LISTEN=" + p.listen, "WAYBILL_HERALD_ALLOW=127.0.0.0/8",
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.ready(ctx)
}

// ready waits for /readyz.
func (p *process) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.listen+"/readyz", nil)
		if err != nil {
			return err
		}
		if a, err := http.DefaultClient.Do(q); err == nil {
			_ = a.Body.Close()
			if a.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return errors.New("serve did not become ready")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends serve in order and returns the CPU time it used.
func (p *process) stop() (time.Duration, error) {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	timer := time.AfterFunc(stopWithin, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	if err := p.cmd.Wait(); err != nil {
		return 0, fmt.Errorf("serve did not stop in order: %w", err)
	}
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(), nil
}

// serve measures from the commit of all rows to the arrival of the last.
func (s *stack) serve(ctx context.Context, hooks int) (figure, error) {
	q, err := s.newQueue(ctx, hooks)
	if err != nil {
		return figure{}, err
	}
	defer q.close()
	p, err := s.launch(ctx, q)
	if err != nil {
		return figure{}, err
	}
	// One row a hook first: connections are open and receivers known.
	if err := s.deliver(ctx, q, hooks); err != nil {
		return figure{}, err
	}
	before := p.cpu()
	began := s.now()
	if err := s.deliver(ctx, q, s.rows); err != nil {
		return figure{}, err
	}
	took := s.now().Sub(began)
	used := p.cpu() - before
	if _, err := p.stop(); err != nil {
		return figure{}, err
	}
	if n, err := q.unfinished(ctx); err != nil || n > 0 {
		return figure{}, fmt.Errorf("%d rows are not sent, %w", n, err)
	}
	if got, want := q.arrived.Load(), int64(s.rows+hooks); got != want {
		return figure{}, fmt.Errorf("%d calls for %d rows", got, want)
	}
	return figure{
		rate: float64(s.rows) / took.Seconds(),
		cpu:  float64(used.Microseconds()) / 1000 / float64(s.rows),
	}, nil
}

// deliver inserts rows and waits for their calls.
func (s *stack) deliver(ctx context.Context, q *queue, n int) error {
	if err := q.insert(ctx, n); err != nil {
		return err
	}
	deadline := time.NewTimer(drainWithin)
	defer deadline.Stop()
	for range n {
		select {
		case <-q.calls:
		case <-deadline.C:
			return errors.New("rows were not delivered in time")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// idleLatency measures single rows on a system that has nothing else to do.
func (s *stack) idleLatency(ctx context.Context) error {
	q, err := s.newQueue(ctx, 1)
	if err != nil {
		return err
	}
	defer q.close()
	p, err := s.launch(ctx, q)
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
	if _, err := p.stop(); err != nil {
		return err
	}
	slices.Sort(took)
	fmt.Printf("\nidle, %d single rows, commit to call: p50 %v, p99 %v, max %v\n", len(took),
		took[len(took)/2].Round(time.Millisecond), took[len(took)*99/100].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	return nil
}
