package heralddb

import (
	"context"
	"fmt"

	"waybill/internal/herald"
)

// A hook's due retries share their part of key_ratelimit with the rows that
// failed for good: a receiver that was down for a week leaves as many as there
// were events. So, as with heads, only some looks go over all of them.
const dueSQL = `
SELECT id, phid, dateModified, dateModified > lastRequestEpoch + 2,
       dateModified + ? <= UNIX_TIMESTAMP(), lastRequestEpoch
  FROM herald_webhookrequest
 WHERE webhookPHID = ? AND lastRequestResult = 'fail' AND status = 'queued'
   AND lastRequestEpoch >= ? AND (lastRequestEpoch <= CAST(UNIX_TIMESTAMP() AS SIGNED) - ?` + datedAhead + `)
 ORDER BY lastRequestEpoch, id LIMIT ?`

// Due returns a hook's failed rows whose backoff is over, the longest due
// first, at most limit. A row's dateModified up to two above its epoch is no
// claim: created, claimed and failed within one second it ends there.
//
// What a whole look did not find was not due then, so it has a later call than
// that look allowed; a row that somebody dates back, or a clock that was put back,
// is found by the next.
func (d *DB) Due(ctx context.Context, hookPHID string, limit int) ([]herald.Candidate, error) {
	if from, ok := d.known(d.newDue, hookPHID); ok {
		found, _, err := d.due(ctx, hookPHID, from, limit)
		return found, err
	}
	return d.allDue(ctx, hookPHID, limit)
}

// allDue reads all of the hook's failed rows and remembers where those begin
// that can be due.
func (d *DB) allDue(ctx context.Context, hookPHID string, limit int) ([]herald.Candidate, error) {
	var now int64
	if err := d.pool.QueryRowContext(ctx, "SELECT UNIX_TIMESTAMP()").Scan(&now); err != nil {
		return nil, fmt.Errorf("read the database's clock: %w", err)
	}
	found, first, err := d.due(ctx, hookPHID, 0, limit)
	if err != nil {
		return nil, err
	}
	from := max(0, now-seconds(d.cfg.Backoff)+1)
	if len(found) > 0 {
		from = min(from, first)
	}
	d.keep(d.newDue, hookPHID, from)
	return found, nil
}

// due reads from an epoch on; first is the epoch of the first row found.
func (d *DB) due(ctx context.Context, hookPHID string, from int64, limit int) (found []herald.Candidate, first int64, err error) {
	rows, err := d.pool.QueryContext(ctx, dueSQL, seconds(d.cfg.Lease), hookPHID, from, seconds(d.cfg.Backoff), limit)
	if err != nil {
		return nil, 0, fmt.Errorf("read a hook's due retries: %w", err)
	}
	read := 0
	found, err = collect(rows, "read a hook's due retries", func(c *herald.Candidate) error {
		c.HookPHID, c.Retry = hookPHID, true
		var epoch int64
		err := rows.Scan(&c.ID, &c.PHID, &c.Modified, &c.Claimed, &c.Expired, &epoch)
		if read++; read == 1 {
			first = epoch
		}
		return err
	})
	return found, first, err
}
