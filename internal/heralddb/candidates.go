package heralddb

import (
	"context"
	"database/sql"
	"fmt"

	"waybill/internal/herald"
)

// Statements that look for work. Their plans are a test: they stay cheap beside
// any number of finished rows, on a table without an index on status.
const (
	newestSQL = "SELECT COALESCE(MAX(id), 0) FROM herald_webhookrequest"
	// A row is strange that no rule will ever send or end: an unknown status, an
	// unknown result, a failure more than a day ahead of the database's clock.
	sinceSQL = `
SELECT id, phid, webhookPHID,
       status NOT IN ('queued', 'sent', 'failed')
       OR (status = 'queued' AND lastRequestResult NOT IN ('none', 'fail'))
       OR (status = 'queued' AND lastRequestResult = 'fail' AND lastRequestEpoch > UNIX_TIMESTAMP() + 86400)
  FROM herald_webhookrequest WHERE id > ? ORDER BY id LIMIT ?`
	waitingSQL   = "SELECT DISTINCT webhookPHID FROM herald_webhookrequest"
	unchangedSQL = `
SELECT COUNT(*) FROM herald_webhookrequest
 WHERE id = ? AND status = 'queued'
   AND (lastRequestResult = 'none' OR (? AND (lastRequestEpoch <= CAST(UNIX_TIMESTAMP() AS SIGNED) - ?` + datedAhead + `)))`
	// Failures from before the clock was put back are looked at too: whether they
	// are due, only a clock that was not can say.
	datedAhead = " OR lastRequestEpoch BETWEEN UNIX_TIMESTAMP() + 3 AND UNIX_TIMESTAMP() + 86400"
)

// Arrival is a row above the watermark: which hook has new work.
type Arrival struct {
	ID             uint64
	PHID, HookPHID string
	// Strange: the row's status, result or time is none that Waybill knows.
	Strange bool
}

// Newest returns the highest request id, 0 for an empty table.
func (d *DB) Newest(ctx context.Context) (uint64, error) {
	var id uint64
	err := d.pool.QueryRowContext(ctx, newestSQL).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("read the newest request id: %w", err)
	}
	return id, nil
}

// Since returns rows above a watermark, at most limit, oldest first. It reads
// only new rows through the primary key, so an idle poll costs the same beside
// any number of finished rows. A row that commits below a watermark already
// read is found by the sweep.
func (d *DB) Since(ctx context.Context, watermark uint64, limit int) ([]Arrival, error) {
	rows, err := d.pool.QueryContext(ctx, sinceSQL, watermark, limit)
	if err != nil {
		return nil, fmt.Errorf("poll for requests: %w", err)
	}
	return collect(rows, "poll for requests", func(a *Arrival) error {
		return rows.Scan(&a.ID, &a.PHID, &a.HookPHID, &a.Strange)
	})
}

// collect reads rows to their end and closes them. An error has the statement's
// purpose in front: an answer may break off in its middle.
func collect[T any](rows *sql.Rows, purpose string, scan func(*T) error) ([]T, error) {
	defer func() { _ = rows.Close() }()
	var out []T
	for rows.Next() {
		var v T
		if err := scan(&v); err != nil {
			return nil, fmt.Errorf("%s: %w", purpose, err)
		}
		out = append(out, v)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", purpose, err)
	}
	return out, nil
}

// Waiting lists the hooks, existing or not, that rows refer to. key_ratelimit
// answers it hook by hook without reading their rows.
func (d *DB) Waiting(ctx context.Context) ([]string, error) {
	rows, err := d.pool.QueryContext(ctx, waitingSQL) //nolint:sqlclosecheck // collect closes them
	if err != nil {
		return nil, fmt.Errorf("list hooks with requests: %w", err)
	}
	return collect(rows, "list hooks with requests", func(s *string) error { return rows.Scan(s) })
}

// Unchanged reports whether a candidate still has no result of its next
// attempt: queued, and with the result that it was read with.
func (d *DB) Unchanged(ctx context.Context, c herald.Candidate) (bool, error) {
	var n int
	err := d.pool.QueryRowContext(ctx, unchangedSQL, c.ID, c.Retry, seconds(d.cfg.Backoff)).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("look for a result: %w", err)
	}
	return n == 1, nil
}
