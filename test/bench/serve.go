package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Bounds of waiting for the subject.
const (
	readyWithin = time.Minute
	// Thousands of hooks are announced before their first rows are sent.
	drainWithin = 15 * time.Minute
	stopWithin  = time.Minute
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
func (s *stack) launch(ctx context.Context, q *queue, settings ...string) (*process, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &process{listen: listener.Addr().String()}
	_ = listener.Close()
	log, err := os.Create(filepath.Join(s.dir, q.namespace+p.listen+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), s.waybill, "serve")
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append([]string{
		"WAYBILL_HERALD_DSN=" + q.dsn, "WAYBILL_DSN=" + s.mariadb.DSN(q.namespace+"_waybill"),
		"WAYBILL_TEMPORAL_ADDRESS=" + s.temporal.Addr(), "WAYBILL_TEMPORAL_NAMESPACE=" + s.temporal.Namespace(),
		"WAYBILL_LISTEN=" + p.listen, "WAYBILL_HERALD_ALLOW=127.0.0.0/8",
	}, settings...)
	p.cmd.Env = append(p.cmd.Env, inherited()...)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	s.launched = append(s.launched, p)
	return p, p.ready(ctx)
}

// inherited are the variables of the Go runtime that a measurement may vary, and
// those that begin with the name of a profiler's.
func inherited() (vars []string) {
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "GO") || strings.HasPrefix(v, "ZZ_") {
			vars = append(vars, v)
		}
	}
	return vars
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
	q, err := s.newQueue(ctx, hooks, 0)
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
	if err := s.settle(ctx); err != nil {
		return figure{}, err
	}
	before := cpuOf(p.cmd.Process.Pid)
	began := s.now()
	if err := s.deliver(ctx, q, s.rows); err != nil {
		return figure{}, err
	}
	took := s.now().Sub(began)
	used := cpuOf(p.cmd.Process.Pid) - before
	if _, err := p.stop(); err != nil {
		return figure{}, err
	}
	if err := q.complete(ctx, s.rows+hooks); err != nil {
		return figure{}, err
	}
	return figure{rate: float64(s.rows) / took.Seconds(), cpu: each(used, s.rows)}, nil
}

// complete checks that every row is sent and was called once.
func (q *queue) complete(ctx context.Context, rows int) error {
	if n, err := q.count(ctx, "status <> 'sent'"); err != nil || n > 0 {
		return fmt.Errorf("%d rows are not sent, %w", n, err)
	}
	if got := q.arrived.Load(); got != int64(rows) {
		return fmt.Errorf("%d calls for %d rows", got, rows)
	}
	return nil
}

// deliver inserts rows and waits for their calls.
func (s *stack) deliver(ctx context.Context, q *queue, n int) error {
	want := q.arrived.Load() + int64(n)
	if err := q.insert(ctx, n); err != nil {
		return err
	}
	return q.await(ctx, want, drainWithin)
}

// await waits until so many calls have arrived in all.
func (q *queue) await(ctx context.Context, want int64, within time.Duration) error {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for q.arrived.Load() < want {
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
