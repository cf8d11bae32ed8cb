package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// The flood: hooks that only deliver, hooks whose rows fail now and then, hooks
// whose rows all fail. A tenth of the rows fails and is tried for ever: half of
// them on hooks of their own, half among the mixed hooks' good rows.
const (
	goodHooks, mixedHooks, badHooks = 20, 10, 10
	floodHooks                      = goodHooks + mixedHooks + badHooks
	sampleEvery                     = 2 * time.Second
	// breakerOff: with the default ten failures stop a hook for five minutes,
	// which is easier on everything; this is the worst case. More than any hook
	// has failing rows, and no more, since claims count up to it.
	breakerOff = "WAYBILL_HERALD_BREAKER_THRESHOLD=1000"
)

// flooding is the i-th row of the flood.
func flooding(i int) row {
	r := row{object: healthy, retry: "forever", status: "queued", result: "none"}
	switch turn := i / 20; {
	case i%20 == 0: // 5 %
		r.hook, r.object = goodHooks+mixedHooks+turn%badHooks, failing
	case i%20 == 1: // 5 %
		r.hook, r.object = goodHooks+turn%mixedHooks, failing
	case i%20 < 8: // 30 %
		r.hook = goodHooks + i%mixedHooks
	default:
		r.hook = i % goodHooks
	}
	return r
}

// seen is the most that was seen of each.
type seen struct{ open, goroutines, memory float64 }

// floods measures memory and open workflows while very many rows wait, a tenth
// of which fail for ever.
func (s *stack) floods(ctx context.Context) error {
	fmt.Printf("%d rows over %d hooks (%d good, %d mixed, %d failing), a tenth fails for ever, breaker off; wanted serve below 200 MiB\n",
		s.flood, floodHooks, goodHooks, mixedHooks, badHooks)
	q, err := s.newQueue(ctx, floodHooks, 0)
	if err != nil {
		return err
	}
	defer q.close()
	if err := q.fill(ctx, s.flood, flooding); err != nil {
		return err
	}
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	p, err := s.launch(ctx, q, breakerOff)
	if err != nil {
		return err
	}
	began := s.now()
	most, err := s.ride(ctx, q, p, c)
	if err != nil {
		return err
	}
	sent, err := q.count(ctx, "status = 'sent'")
	if err != nil {
		return err
	}
	highest, now := peak(p.cmd.Process.Pid)
	fmt.Printf("after %v: %d of %d rows sent, %d calls taken, %d refused; open workflows %.0f at most, goroutines %.0f at most, serve %.0f MiB (VmHWM), %.0f now\n",
		s.now().Sub(began).Round(time.Second), sent, s.flood, q.arrived.Load(), q.refused.Load(), most.open, most.goroutines, highest, now)
	_, err = p.stop()
	return err
}

// ride samples until all good rows are delivered.
func (s *stack) ride(ctx context.Context, q *queue, p *process, c client.Client) (most seen, err error) {
	good := int64(s.flood - s.flood/10)
	deadline := s.now().Add(s.within)
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for n := 0; q.arrived.Load() < good && s.now().Before(deadline); n++ {
		select {
		case <-ctx.Done():
			return most, ctx.Err()
		case <-tick.C:
		}
		open, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Query: "WorkflowType = 'Request' AND ExecutionStatus = 'Running'",
		})
		if err != nil {
			return most, err
		}
		goroutines := p.metric(ctx, "go_goroutines")
		_, now := peak(p.cmd.Process.Pid)
		most = seen{max(most.open, float64(open.GetCount())), max(most.goroutines, goroutines), max(most.memory, now)}
		if n%15 == 0 {
			fmt.Printf("  %7d taken, %6d refused, %5d workflows open, %5.0f goroutines, serve %.0f MiB\n",
				q.arrived.Load(), q.refused.Load(), open.GetCount(), goroutines, now)
		}
	}
	return most, nil
}

// metric reads a plain gauge from /metrics; 0 when it is not there.
func (p *process) metric(ctx context.Context, name string) float64 {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.listen+"/metrics", nil)
	if err != nil {
		return 0
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer a.Body.Close()
	for lines := bufio.NewScanner(a.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			f, _ := strconv.ParseFloat(value, 64)
			return f
		}
	}
	return 0
}
