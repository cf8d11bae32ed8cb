package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// The flood: hooks that only deliver (sound), hooks whose rows fail now and then, hooks
// whose rows all fail. A tenth of the rows fails and is tried for ever: half of
// them on hooks of their own, half among the mixed hooks' good rows.
const (
	soundHooks, mixedHooks, badHooks = 20, 10, 10
	floodHooks                       = soundHooks + mixedHooks + badHooks
	sampleEvery                      = 2 * time.Second
)

// flooding is the i-th row of the flood.
func flooding(i int) row {
	r := row{object: healthy, retry: "forever", status: "queued", result: "none"}
	switch turn := i / 20; {
	case i%20 == 0: // 5 %
		r.hook, r.object = soundHooks+mixedHooks+turn%badHooks, failing
	case i%20 == 1: // 5 %
		r.hook, r.object = soundHooks+turn%mixedHooks, failing
	case i%20 < 8: // 30 %
		r.hook = soundHooks + i%mixedHooks
	default:
		r.hook = i % soundHooks
	}
	return r
}

// seen is the most that was seen of each.
type seen struct{ open, goroutines, memory float64 }

// tide is one way to let the flood come.
type tide struct {
	name     string
	settings []string
	// sound: it is over when the hooks none of whose rows fail are through.
	sound bool
}

func tides() []tide {
	return []tide{
		{name: "settings as they are: ten failures stop a hook for five minutes", sound: true},
		// The worst case. More than any hook has failing rows, and no more, since
		// claims count up to it.
		{name: "breaker off", settings: []string{"WAYBILL_HERALD_BREAKER_THRESHOLD=1000"}},
	}
}

// floods measures memory and open workflows while very many rows wait, a tenth
// of which fail for ever.
func (s *stack) floods(ctx context.Context) error {
	fmt.Printf("%d rows over %d hooks (%d sound, %d mixed, %d failing), a tenth fails for ever; wanted serve below 200 MiB\n",
		s.flood, floodHooks, soundHooks, mixedHooks, badHooks)
	for _, t := range tides() {
		if err := s.floodOnce(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (s *stack) floodOnce(ctx context.Context, t tide) error {
	fmt.Println(t.name)
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
	p, err := s.launch(ctx, q, t.settings...)
	if err != nil {
		return err
	}
	began := s.now()
	over := func() bool { return q.arrived.Load() >= int64(s.flood-s.flood/10) }
	if t.sound {
		over = func() bool { return q.sound.Load() >= int64(s.flood/20*12) }
	}
	most, err := s.ride(ctx, q, p, c, over)
	if err != nil {
		return err
	}
	took := s.now().Sub(began)
	sent, err := q.count(ctx, "status = 'sent'")
	if err != nil {
		return err
	}
	highest, now := peak(p.cmd.Process.Pid)
	fmt.Printf("after %v: %d of %d rows sent, %d calls taken (%.0f/s), %d refused; open workflows %.0f at most, goroutines %.0f at most, serve %.0f MiB (VmHWM), %.0f now\n",
		took.Round(time.Second), sent, s.flood, q.arrived.Load(), float64(q.arrived.Load())/took.Seconds(), q.refused.Load(),
		most.open, most.goroutines, highest, now)
	_, err = p.stop()
	return err
}

// ride samples until it is over.
func (s *stack) ride(ctx context.Context, q *queue, p *process, c client.Client, over func() bool) (most seen, err error) {
	deadline := s.now().Add(s.within)
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for n := 0; !over() && s.now().Before(deadline); n++ {
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
		if now == 0 {
			return most, errors.New("serve is gone")
		}
		most = seen{max(most.open, float64(open.GetCount())), max(most.goroutines, goroutines), max(most.memory, now)}
		if n%30 == 0 {
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
