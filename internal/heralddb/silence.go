package heralddb

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"waybill/internal/herald"
)

// SilenceWindow is how long a row that Phorge has failed as silent says that
// the site is: ten minutes, long enough for a site whose queue is nearly idle.
const SilenceWindow = 10 * time.Minute

// silencedSQL looks at new rows only: while a site is silent it is those that
// Phorge fails, the moment it polls them. The pattern is a sieve, the row's
// words are read by the caller: Phorge's encoder puts nothing between key and
// value, but somebody else's may.
const silencedSQL = `
SELECT id, phid, webhookPHID, status, properties, lastRequestResult, lastRequestEpoch, dateModified
  FROM herald_webhookrequest
 WHERE id > ? AND status = 'failed' AND lastRequestResult = 'none' AND lastRequestEpoch = 0
   AND dateModified + ? >= UNIX_TIMESTAMP() AND properties LIKE '%"errorCode"%"silent"%'
 ORDER BY id`

// wholeLooks is how many looks for silence lie between two over all the newest
// lateIDs, as do the first ones. The others read what is new since as many looks:
// asked for every second, 5,000 rows were most of what an idle system read.
const wholeLooks = 60

// looks remembers the newest id at each of the last wholeLooks looks.
type looks struct {
	newest []uint64
	since  int // looks since all ids were read
}

// above returns the id above which the next look reads.
func (l *looks) above(newest uint64) uint64 {
	lowest := newest - min(newest, lateIDs)
	if len(l.newest) < wholeLooks || l.since >= wholeLooks {
		return lowest
	}
	return max(lowest, l.newest[0])
}

// done notes a look that has worked; one that has not is made again whole.
func (l *looks) done(newest, above uint64) {
	if l.since++; above == newest-min(newest, lateIDs) {
		l.since = 0
	}
	if len(l.newest) == wholeLooks {
		l.newest = l.newest[1:]
	}
	l.newest = append(l.newest, newest)
}

// Silenced returns rows that Phorge itself has failed within the window, by the
// database's clock, because its site is silent: among the newest lateIDs with the
// first looks and with every wholeLooks-th, else among those that are new since
// then. It reads by the primary key, so it costs the same beside any number
// of finished rows.
func (d *DB) Silenced(ctx context.Context) ([]herald.Request, error) {
	newest, err := d.Newest(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	above := d.silence.above(newest)
	d.mu.Unlock()
	rows, err := d.pool.QueryContext(ctx, silencedSQL, above, seconds(SilenceWindow))
	if err != nil {
		return nil, fmt.Errorf("look for silenced requests: %w", err)
	}
	found, err := collect(rows, "look for silenced requests", func(r *herald.Request) error {
		return rows.Scan(&r.ID, &r.PHID, &r.HookPHID, &r.Status, &r.Properties, &r.LastResult, &r.LastEpoch, &r.Modified)
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.silence.done(newest, above)
	d.mu.Unlock()
	var silenced []herald.Request
	for _, r := range found {
		if r.Silenced() {
			silenced = append(silenced, r)
		}
	}
	return silenced, nil
}

// endingsSQL is completed by a list of ids.
const endingsSQL = `
SELECT id, status, lastRequestResult, properties FROM herald_webhookrequest WHERE id IN `

// Endings says how rows stand now, by id. A row that is gone is left out.
func (d *DB) Endings(ctx context.Context, ids []uint64) (map[uint64]herald.Ending, error) {
	out := make(map[uint64]herald.Ending, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	rows, err := d.pool.QueryContext(ctx, endingsSQL+list(ids))
	if err != nil {
		return nil, fmt.Errorf("look at finished requests: %w", err)
	}
	found, err := collect(rows, "look at finished requests", func(r *herald.Request) error {
		return rows.Scan(&r.ID, &r.Status, &r.LastResult, &r.Properties)
	})
	for _, r := range found {
		out[r.ID] = r.Ending()
	}
	return out, err
}

// list is a set of ids for IN. They are numbers of Waybill's own, no text.
func list(ids []uint64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatUint(id, 10)
	}
	return "(" + strings.Join(texts, ",") + ")"
}
