package main

import (
	"context"
	"fmt"
	"strings"

	"waybill/workflows"
)

// sampled is how many deliveries' histories are looked at.
const sampled = 20

// depths measures what a delivery costs with so many rows waiting behind it,
// and with so many hooks.
func (s *stack) depths(ctx context.Context) error {
	fmt.Printf("cost of one of the first %d deliveries\n\n%7s %6s  %8s  %10s  %9s  %8s %8s %8s  %8s  %8s  %s\n", 2*s.rows,
		"queued", "hooks", "rate", "statements", "rows read", "serve", "database", "Temporal", "events", "history", "serve VmHWM")
	for at := range strings.SplitSeq(s.depthList, ",") {
		var rows, hooks int
		if _, err := fmt.Sscanf(at, "%dx%d", &rows, &hooks); err != nil {
			return fmt.Errorf("%q is not ROWSxHOOKS: %w", at, err)
		}
		if err := s.depth(ctx, rows, hooks); err != nil {
			return err
		}
	}
	return nil
}

func (s *stack) depth(ctx context.Context, rows, hooks int) error {
	q, err := s.newQueue(ctx, hooks, 0)
	if err != nil {
		return err
	}
	defer q.close()
	p, err := s.launch(ctx, q)
	if err != nil {
		return err
	}
	if err := s.deliver(ctx, q, hooks); err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	if err := q.insert(ctx, rows); err != nil {
		return err
	}
	m := meter{stack: s, db: q.db, processes: []*process{p}}
	before, err := m.read(ctx)
	if err != nil {
		return err
	}
	first := q.arrived.Load()
	if err := q.await(ctx, min(first+int64(2*s.rows), int64(hooks+rows)), drainWithin); err != nil {
		return err
	}
	n := int(q.arrived.Load() - first)
	cost, err := m.since(ctx, before)
	if err != nil {
		return err
	}
	highest, _ := peak(p.cmd.Process.Pid)
	if _, err := p.stop(); err != nil {
		return err
	}
	events, size, err := s.history(ctx, q)
	fmt.Printf("%7d %6d  %6.0f/s  %10.1f  %9.1f  %5.1f ms %5.1f ms %5.1f ms  %8.1f  %4.1f KiB  %.0f MiB\n", rows, hooks,
		float64(n)/cost.took.Seconds(), float64(cost.statements)/float64(n), float64(cost.reads)/float64(n),
		each(cost.serve, n), each(cost.database, n), each(cost.temporal, n), events, size/1024, highest)
	return err
}

// history is the mean number of events and bytes of a delivery's history.
func (s *stack) history(ctx context.Context, q *queue) (events, size float64, err error) {
	rows, err := q.db.QueryContext(ctx, "SELECT phid FROM herald_webhookrequest WHERE status = 'sent' ORDER BY id DESC LIMIT ?", sampled)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = rows.Close() }()
	c, err := s.dial(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	n := 0.0
	for rows.Next() {
		var phid string
		if err := rows.Scan(&phid); err != nil {
			return 0, 0, err
		}
		d, err := c.DescribeWorkflow(ctx, workflows.RequestID(phid), "")
		if err != nil {
			return 0, 0, err
		}
		info := d.RawResponse.GetWorkflowExecutionInfo()
		n++
		events, size = events+float64(info.GetHistoryLength()), size+float64(info.GetHistorySizeBytes())
	}
	return events / n, size / n, rows.Err()
}
