package heralddb

import (
	"context"
	"fmt"
	"time"

	"waybill/internal/herald"
)

// A hook's never-tried rows share their part of key_ratelimit with its failed
// configurations: a hook that has been disabled for a week keeps 300,000 of
// them there, and reading past those takes a third of a second. So only some
// looks go over all of them; the others begin at the ids that can be new.
const (
	// wholeEvery is how often a hook's line is read from its beginning, for
	// rows that committed very late or that somebody put back into the queue.
	wholeEvery = time.Minute
	// lateIDs below the newest id are always read: rows whose transaction
	// commits after a later id was seen.
	lateIDs = 5000
)

const (
	headColumns = `
SELECT id, phid, dateModified, dateModified <> dateCreated,
       dateModified + ? <= UNIX_TIMESTAMP()
  FROM herald_webhookrequest
 WHERE webhookPHID = ? AND lastRequestResult = 'none' AND status = 'queued'`
	headsSQL    = headColumns + ` ORDER BY lastRequestEpoch, id LIMIT ?`
	newHeadsSQL = headColumns + ` AND lastRequestEpoch = 0 AND id > ? ORDER BY id LIMIT ?`
)

// floor is from where on a hook's line is read until the next whole look.
type floor struct {
	from  int64
	until time.Time
}

// known is the hook's floor, if it still counts.
func (d *DB) known(floors map[string]floor, hookPHID string) (from int64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := floors[hookPHID]
	return f.from, ok && d.cfg.Clock().Before(f.until)
}

// keep remembers what a whole look has found to be the floor.
func (d *DB) keep(floors map[string]floor, hookPHID string, from int64) {
	until := d.cfg.Clock().Add(wholeEvery)
	d.mu.Lock()
	defer d.mu.Unlock()
	floors[hookPHID] = floor{from: from, until: until}
}

// Heads returns a hook's never-tried rows, oldest first, at most limit. The
// order is that of key_ratelimit, whose rows with result none all have epoch 0
// and so come by id. Rows under a claim are included and marked: their owner
// must see them for a lease before it may call the claim expired.
func (d *DB) Heads(ctx context.Context, hookPHID string, limit int) ([]herald.Candidate, error) {
	if from, ok := d.known(d.newHeads, hookPHID); ok {
		return d.heads(ctx, hookPHID, newHeadsSQL, seconds(d.cfg.Lease), hookPHID, from, limit)
	}
	return d.allHeads(ctx, hookPHID, limit)
}

// allHeads reads the line from its beginning and remembers where that is.
func (d *DB) allHeads(ctx context.Context, hookPHID string, limit int) ([]herald.Candidate, error) {
	newest, err := d.Newest(ctx)
	if err != nil {
		return nil, err
	}
	found, err := d.heads(ctx, hookPHID, headsSQL, seconds(d.cfg.Lease), hookPHID, limit)
	if err != nil {
		return nil, err
	}
	from := int64(newest - min(newest, lateIDs))
	for _, c := range found {
		from = min(from, int64(c.ID)-1)
	}
	d.keep(d.newHeads, hookPHID, from)
	return found, nil
}

func (d *DB) heads(ctx context.Context, hookPHID, query string, args ...any) ([]herald.Candidate, error) {
	rows, err := d.pool.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read a hook's queue: %w", err)
	}
	return collect(rows, "read a hook's queue", func(c *herald.Candidate) error {
		c.HookPHID = hookPHID
		return rows.Scan(&c.ID, &c.PHID, &c.Modified, &c.Claimed, &c.Expired)
	})
}
