package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"waybill/internal/doctor"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/workflows"
)

// lookEvery is how often the queue and the locks are looked at while they are
// watched: a call of Phorge's own worker holds its lock for as long as it takes.
const lookEvery = 100 * time.Millisecond

// watching is what a while of looking has come to.
type watching struct {
	*patient
	locks  *heralddb.LockSession
	newest uint64                     // of the rows at the start
	last   map[string]heralddb.Glance // each row as it was seen last
	// changed are changes that may be anybody's.
	changed map[string]doctor.Change
	ours    map[string]bool // hooks whose lock Waybill's owner has held so far
	locked  map[string]bool // hooks whose lock somebody else has held
}

// consumers watches the queue for rows that somebody else works on.
func (p *patient) consumers(ctx context.Context) ([]doctor.Finding, error) {
	if p.watch == 0 {
		return nil, nil
	}
	s, err := heralddb.OpenLockSession(ctx, soon(p.config.Herald.LockDSN()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	w := &watching{
		patient: p, locks: s, last: map[string]heralddb.Glance{},
		changed: map[string]doctor.Change{}, ours: map[string]bool{}, locked: map[string]bool{},
	}
	if err := w.begin(ctx); err != nil {
		return nil, err
	}
	say(p.job.stderr, "Watching the queue for %s; Ctrl-C ends that sooner, --watch 0 skips it.", p.watch)
	began := p.now()
	ticker, end := time.NewTicker(lookEvery), time.After(p.watch)
	defer ticker.Stop()
	for over := false; !over; {
		select {
		case <-ctx.Done(): // what was seen until then counts
			ctx, over = context.WithoutCancel(ctx), true
		case <-end:
			over = true
		case <-ticker.C:
		}
		if err := w.look(ctx); err != nil {
			return nil, err
		}
	}
	return w.judge(ctx, p.now().Sub(began))
}

// begin takes down the rows that wait longest, and whose hooks are Waybill's.
func (w *watching) begin(ctx context.Context) (err error) {
	if w.newest, err = w.rows.Newest(ctx); err != nil {
		return err
	}
	longest, err := w.rows.Longest(ctx)
	for _, g := range longest {
		w.last[g.PHID] = g
	}
	return err
}

// look compares rows with the look before, and takes down new ones.
func (w *watching) look(ctx context.Context) error {
	ids := make([]uint64, 0, len(w.last))
	for _, g := range w.last {
		ids = append(ids, g.ID)
	}
	again, err := w.rows.Again(ctx, ids)
	if err != nil {
		return err
	}
	fresh, err := w.rows.Above(ctx, w.newest)
	if err != nil {
		return err
	}
	after := map[string]heralddb.Glance{}
	for _, g := range append(again, fresh...) {
		after[g.PHID] = g
	}
	for _, c := range doctor.Changes(seen(w.last), seen(after)) {
		w.changed[c.PHID] = c
	}
	maps.Copy(w.last, after)
	return w.lookAtLocks(ctx)
}

func seen(rows map[string]heralddb.Glance) map[string]doctor.Seen {
	out := make(map[string]doctor.Seen, len(rows))
	for phid, g := range rows {
		out[phid] = doctor.Seen{PHID: phid, Hook: g.Hook, Status: g.Status, Result: g.Result, Called: g.Called, Modified: g.Modified}
	}
	return out
}

// lookAtLocks of the hooks that have rows among those watched.
func (w *watching) lookAtLocks(ctx context.Context) error {
	looked := map[string]bool{}
	for _, g := range w.last {
		if looked[g.Hook] {
			continue
		}
		looked[g.Hook] = true
		holder, err := w.locks.Holder(ctx, herald.LockName(w.config.Herald.Namespace, g.Hook))
		if err != nil {
			return err
		}
		own := holder != 0 && holder == w.owners[g.Hook].Connection
		if before, known := w.ours[g.Hook]; !known || before {
			w.ours[g.Hook] = own
		}
		if holder != 0 && !own {
			w.locked[g.Hook] = true
		}
	}
	return nil
}

// judge leaves out what Waybill did itself: each of its attempts is one of a workflow.
func (w *watching) judge(ctx context.Context, watched time.Duration) ([]doctor.Finding, error) {
	changed := slices.Collect(maps.Values(w.changed))
	if len(changed) > 0 {
		temporal, err := soonTemporal(ctx, w.job)
		if err == nil {
			defer temporal.Close()
			changed, err = foreign(ctx, temporal, changed)
		}
		if err != nil && len(w.owners) > 0 {
			// Without its workflows Waybill's deliveries cannot be told apart.
			return nil, temporalAway(w.job, err)
		}
	}
	result := doctor.Watched{For: watched, Foreign: changed, Ours: w.ours}
	for _, c := range changed {
		result.Locked = result.Locked || w.locked[c.Hook]
	}
	return doctor.Consumers(result), nil
}

// foreign keeps the changes of rows for which no workflow has made an attempt.
func foreign(ctx context.Context, temporal client.Client, changed []doctor.Change) (kept []doctor.Change, err error) {
	for _, c := range changed {
		ours, err := attempted(ctx, temporal, workflows.RequestID(c.PHID))
		if err != nil {
			return nil, err
		}
		if !ours {
			kept = append(kept, c)
		}
	}
	return kept, nil
}

// attempted says that the newest run of a workflow has sent something, or may have.
func attempted(ctx context.Context, temporal client.Client, id string) (bool, error) {
	newest, err := temporal.DescribeWorkflow(ctx, id, "")
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if newest.Status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		return true, nil
	}
	return viewRun(ctx, temporal, newest.RawResponse.GetWorkflowExecutionInfo()).Attempts > 0, nil
}
