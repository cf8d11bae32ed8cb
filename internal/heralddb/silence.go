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

// Silenced returns the rows among the newest lateIDs that Phorge itself has
// failed within the window, by the database's clock, because its site is
// silent. It reads by the primary key, so it costs the same beside any number
// of finished rows.
func (d *DB) Silenced(ctx context.Context) ([]herald.Request, error) {
	newest, err := d.Newest(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := d.pool.QueryContext(ctx, silencedSQL, newest-min(newest, lateIDs), seconds(SilenceWindow))
	if err != nil {
		return nil, fmt.Errorf("look for silenced requests: %w", err)
	}
	found, err := collect(rows, "look for silenced requests", func(r *herald.Request) error {
		return rows.Scan(&r.ID, &r.PHID, &r.HookPHID, &r.Status, &r.Properties, &r.LastResult, &r.LastEpoch, &r.Modified)
	})
	var silenced []herald.Request
	for _, r := range found {
		if r.Silenced() {
			silenced = append(silenced, r)
		}
	}
	return silenced, err
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
