package heralddb

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// HookName is what feeding and listing need of a hook: no URI and no key leave
// the database for that.
type HookName struct {
	PHID, Name, Status string
}

// Hooks lists every hook of the table, disabled ones included: their rows are
// written as failed, so somebody must own them.
func (d *DB) Hooks(ctx context.Context) ([]HookName, error) {
	rows, err := d.pool.QueryContext(ctx, "SELECT phid, name, status FROM herald_webhook ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("list hooks: %w", err)
	}
	return collect(rows, "list hooks", func(h *HookName) error { return rows.Scan(&h.PHID, &h.Name, &h.Status) })
}

// hooksSQL tells whether the list of hooks has changed, from key_phid alone: ids
// are not given out twice, so a list with another hook has another sum.
const hooksSQL = "SELECT COUNT(*), COALESCE(SUM(id), 0), COALESCE(BIT_XOR(CRC32(phid)), 0) FROM herald_webhook"

// hookList is a list of hooks and what hooksSQL said when it was read.
type hookList struct {
	mark  [3]uint64
	phids []string
}

// HookPHIDs lists every hook's PHID, like Hooks. The list is wanted each second
// by starter and owner, and sent by the server only when it has changed.
func (d *DB) HookPHIDs(ctx context.Context) ([]string, error) {
	var mark [3]uint64
	if err := d.pool.QueryRowContext(ctx, hooksSQL).Scan(&mark[0], &mark[1], &mark[2]); err != nil {
		return nil, fmt.Errorf("look at the list of hooks: %w", err)
	}
	d.mu.Lock()
	last := d.hooks
	d.mu.Unlock()
	if last != nil && last.mark == mark {
		return slices.Clone(last.phids), nil
	}
	all, err := d.Hooks(ctx)
	if err != nil {
		return nil, err
	}
	// What changes between the two statements is seen by the next look: its mark
	// differs from the one kept here.
	list := &hookList{mark: mark, phids: make([]string, 0, len(all))}
	for _, h := range all {
		list.phids = append(list.phids, h.PHID)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hooks = list
	return slices.Clone(list.phids), nil
}

// Standing is how a hook stands by its rows. Moments are seconds of the
// database's clock, 0 for never.
type Standing struct {
	HookName
	// Gone: rows wait for the hook, and its own row is no more.
	Gone bool
	// Queued rows, those of them under a live claim, and when the oldest was made.
	Queued, InFlight, Oldest int64
	// Okay and Fail are the newest results of either kind; Failure is what the
	// newest failed row says about itself.
	Okay, Fail int64
	Failure    []byte
	// ThresholdFailure is the breaker's evidence, as in herald.Snapshot.
	ThresholdFailure int64
	// Now is the database's clock.
	Now int64
}

// standingsSQL walks key_ratelimit from its end, a few rows for each hook,
// however many it keeps.
const standingsSQL = `
SELECT h.phid, h.name, h.status, UNIX_TIMESTAMP(),
       COALESCE((SELECT o.lastRequestEpoch FROM herald_webhookrequest o
         WHERE o.webhookPHID = h.phid AND o.lastRequestResult = 'okay'
         ORDER BY o.lastRequestEpoch DESC LIMIT 1), 0),
       COALESCE((SELECT f.lastRequestEpoch FROM herald_webhookrequest f
         WHERE f.webhookPHID = h.phid AND f.lastRequestResult = 'fail'
         ORDER BY f.lastRequestEpoch DESC LIMIT 1), 0),
       COALESCE((SELECT f.properties FROM herald_webhookrequest f
         WHERE f.webhookPHID = h.phid AND f.lastRequestResult = 'fail'
         ORDER BY f.lastRequestEpoch DESC, f.id DESC LIMIT 1), ''),
       COALESCE((SELECT t.lastRequestEpoch FROM herald_webhookrequest t
         WHERE t.webhookPHID = h.phid AND t.lastRequestResult = 'fail'
         ORDER BY t.lastRequestEpoch DESC LIMIT 1 OFFSET ?), 0)
  FROM herald_webhook h ORDER BY h.id`

// liveSQL says that a claim stands on a queued row and its lease is not over by
// the database's clock (herald.Request.Claimed in SQL). Its argument is the lease.
const liveSQL = `IF(lastRequestResult = 'fail', dateModified > lastRequestEpoch + 2, dateModified <> dateCreated)
       AND dateModified + ? > UNIX_TIMESTAMP()`

// queuesSQL reads the table once from end to end: with no key on status the way
// through key_ratelimit, which the grouping invites to, would visit the same rows
// one by one (0.33 s instead of 0.08 s for 300,000 rows of 2,000 hooks).
const queuesSQL = `
SELECT webhookPHID, COUNT(*), MIN(dateCreated), COALESCE(SUM(` + liveSQL + `), 0), UNIX_TIMESTAMP()
  FROM herald_webhookrequest IGNORE INDEX (key_ratelimit) WHERE status = 'queued' GROUP BY webhookPHID`

// Standings says how every hook stands, and those that only rows know. It
// counts, so it is for people who ask and not for polls.
func (d *DB) Standings(ctx context.Context) ([]Standing, error) {
	queues, err := d.queues(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := d.pool.QueryContext(ctx, standingsSQL, max(d.cfg.BreakerThreshold-1, 0))
	if err != nil {
		return nil, fmt.Errorf("list hooks: %w", err)
	}
	hooks, err := collect(rows, "list hooks", func(s *Standing) error {
		return rows.Scan(&s.PHID, &s.Name, &s.Status, &s.Now, &s.Okay, &s.Fail, &s.Failure, &s.ThresholdFailure)
	})
	if err != nil {
		return nil, err
	}
	waiting := make(map[string]Standing, len(queues))
	for _, q := range queues {
		waiting[q.PHID] = q
	}
	for i := range hooks {
		h, q := &hooks[i], waiting[hooks[i].PHID]
		h.Queued, h.InFlight, h.Oldest = q.Queued, q.InFlight, q.Oldest
		delete(waiting, h.PHID)
	}
	for _, q := range queues {
		if _, gone := waiting[q.PHID]; gone {
			q.Gone = true
			hooks = append(hooks, q)
		}
	}
	return hooks, nil
}

func (d *DB) queues(ctx context.Context) ([]Standing, error) {
	rows, err := d.pool.QueryContext(ctx, queuesSQL, seconds(d.cfg.Lease))
	if err != nil {
		return nil, fmt.Errorf("count queues: %w", err)
	}
	return collect(rows, "count queues", func(s *Standing) error {
		return rows.Scan(&s.PHID, &s.Queued, &s.Oldest, &s.InFlight, &s.Now)
	})
}

// Queued counts a hook's queued rows, at most limit, and says when the oldest
// of them was made (seconds, 0 when there is none).
func (d *DB) Queued(ctx context.Context, hookPHID string, limit int) (n int, oldest int64, err error) {
	err = d.pool.QueryRowContext(ctx, `
SELECT COUNT(*), COALESCE(MIN(dateCreated), 0) FROM (
  SELECT dateCreated FROM herald_webhookrequest
   WHERE webhookPHID = ? AND lastRequestResult IN ('none', 'fail') AND status = 'queued' LIMIT ?) q`,
		hookPHID, limit).Scan(&n, &oldest)
	if err != nil {
		return 0, 0, fmt.Errorf("count a hook's queue: %w", err)
	}
	return n, oldest, nil
}

// CountRequests counts rows by status. It reads the table from end to end,
// which no poll may do: callers keep the answer for a while.
func (d *DB) CountRequests(ctx context.Context) (queued, sent, failed int64, err error) {
	err = d.pool.QueryRowContext(ctx, `
SELECT COALESCE(SUM(status = 'queued'), 0), COALESCE(SUM(status = 'sent'), 0), COALESCE(SUM(status = 'failed'), 0)
  FROM herald_webhookrequest`).Scan(&queued, &sent, &failed)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("count requests: %w", err)
	}
	return queued, sent, failed, nil
}

// CountHooks counts all hooks, and those that are not disabled.
func (d *DB) CountHooks(ctx context.Context) (total, active int64, err error) {
	err = d.pool.QueryRowContext(ctx,
		"SELECT COUNT(*), COALESCE(SUM(status <> 'disabled'), 0) FROM herald_webhook").Scan(&total, &active)
	if err != nil {
		return 0, 0, fmt.Errorf("count hooks: %w", err)
	}
	return total, active, nil
}

// Backlog counts the queued rows and says how old the oldest of them is by the
// database's clock. Like CountRequests it reads the whole table.
func (d *DB) Backlog(ctx context.Context) (rows int64, oldest time.Duration, err error) {
	var age int64
	err = d.pool.QueryRowContext(ctx, `
SELECT COUNT(*), COALESCE(CAST(UNIX_TIMESTAMP() AS SIGNED) - CAST(MIN(dateCreated) AS SIGNED), 0)
  FROM herald_webhookrequest WHERE status = 'queued'`).Scan(&rows, &age)
	if err != nil {
		return 0, 0, fmt.Errorf("measure the backlog: %w", err)
	}
	return rows, time.Duration(max(age, 0)) * time.Second, nil
}
