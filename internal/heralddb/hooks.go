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
	return collect(rows, func(h *HookName) error { return rows.Scan(&h.PHID, &h.Name, &h.Status) })
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
