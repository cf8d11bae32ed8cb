package heralddb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"waybill/internal/herald"
)

// State is how a row stands, as people ask for it. Which state a row is in is
// decided by stateSQL alone.
type State string

// The states of a row.
const (
	// StateQueued was never tried.
	StateQueued State = "queued"
	// StateClaimed is under a claim whose lease is not over: probably being sent.
	StateClaimed State = "claimed"
	// StateResting failed, and its backoff is not over.
	StateResting State = "resting"
	// StateDue failed and may be tried again.
	StateDue State = "due"
	// StateSent and StateFailed are over.
	StateSent   State = "sent"
	StateFailed State = "failed"
	// StateUnknown has a status or a result that no rule will ever send or end.
	StateUnknown State = "unknown"
)

// States lists all of them, in the order of a row's life.
func States() []State {
	return []State{StateQueued, StateClaimed, StateResting, StateDue, StateSent, StateFailed, StateUnknown}
}

// resultsOf says with which results a state comes, where that is certain: those
// are in key_ratelimit, the status is not.
var resultsOf = map[State][]string{
	StateQueued: {"none"}, StateClaimed: {"none", "fail"}, StateResting: {"fail"}, StateDue: {"fail"},
}

// stateSQL takes the lease and the backoff.
const stateSQL = `CASE
         WHEN status = 'sent' THEN 'sent'
         WHEN status = 'failed' THEN 'failed'
         WHEN status <> 'queued' OR lastRequestResult NOT IN ('none', 'fail') THEN 'unknown'
         WHEN ` + liveSQL + ` THEN 'claimed'
         WHEN lastRequestResult = 'none' THEN 'queued'
         WHEN lastRequestEpoch + ? > UNIX_TIMESTAMP() THEN 'resting'
         ELSE 'due' END`

const (
	requestColumns = `
SELECT id, phid, webhookPHID, objectPHID, status, properties, lastRequestResult, lastRequestEpoch,
       dateCreated, dateModified, UNIX_TIMESTAMP(), ` + stateSQL + ` AS state
  FROM herald_webhookrequest`
	requestByPHID = requestColumns + " WHERE phid = ?"
	requestByID   = requestColumns + " WHERE id = ?"
	// Newest first along the primary key: a list ends where it is long enough.
	newestFirst = " ORDER BY id DESC LIMIT ?"
	recentSQL   = "SELECT phid FROM herald_webhookrequest ORDER BY id DESC LIMIT ?"
)

// Listed is a row and how it stands at the moment Now of the database's clock.
type Listed struct {
	herald.Request
	State State
	Now   int64
}

// Filter chooses rows; its zero value with a limit chooses the newest ones.
type Filter struct {
	HookPHID string
	States   []State // none: all
	Limit    int
}

// Requests lists rows, the newest first. Without a key on status a rare state
// is looked for through the whole table, or all of the hook's rows.
func (d *DB) Requests(ctx context.Context, f Filter) ([]Listed, error) {
	query, args := d.listing(f)
	rows, err := d.pool.QueryContext(ctx, query, args...) //nolint:sqlclosecheck // collect closes them
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	return collect(rows, "list requests", func(l *Listed) error { return scanListed(rows.Scan, l) })
}

// listing builds the statement. Only fixed words and placeholders go into it.
func (d *DB) listing(f Filter) (query string, args []any) {
	args = []any{seconds(d.cfg.Lease), seconds(d.cfg.Backoff)}
	var where []string
	if f.HookPHID != "" {
		where, args = append(where, "webhookPHID = ?"), append(args, f.HookPHID)
	}
	if results := results(f.States); len(results) > 0 {
		where = append(where, "status = 'queued' AND lastRequestResult IN ("+marks(len(results))+")")
		args = append(args, results...)
	}
	query = requestColumns
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	if len(f.States) > 0 {
		query += " HAVING state IN (" + marks(len(f.States)) + ")"
		for _, s := range f.States {
			args = append(args, string(s))
		}
	}
	return query + newestFirst, append(args, f.Limit)
}

// results are those of queued rows in the states; none where one of the states
// may come with any.
func results(states []State) (all []any) {
	for _, s := range states {
		of, ok := resultsOf[s]
		if !ok {
			return nil
		}
		for _, r := range of {
			if !slices.Contains(all, any(r)) {
				all = append(all, r)
			}
		}
	}
	return all
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// Request reads one row by its PHID; where that is empty, by id. The error is
// herald.ErrGone when there is none.
func (d *DB) Request(ctx context.Context, phid string, id uint64) (Listed, error) {
	query, key := requestByPHID, any(phid)
	if phid == "" {
		query, key = requestByID, id
	}
	var l Listed
	err := scanListed(d.pool.QueryRowContext(ctx, query, seconds(d.cfg.Lease), seconds(d.cfg.Backoff), key).Scan, &l)
	if errors.Is(err, sql.ErrNoRows) {
		return Listed{}, herald.ErrGone
	}
	if err != nil {
		return Listed{}, fmt.Errorf("read a request: %w", err)
	}
	return l, nil
}

func scanListed(scan func(...any) error, l *Listed) error {
	return scan(&l.ID, &l.PHID, &l.HookPHID, &l.ObjectPHID, &l.Status, &l.Properties, &l.LastResult, &l.LastEpoch,
		&l.Created, &l.Modified, &l.Now, &l.State)
}

// Recent lists the PHIDs of the newest rows.
func (d *DB) Recent(ctx context.Context, limit int) ([]string, error) {
	rows, err := d.pool.QueryContext(ctx, recentSQL, limit) //nolint:sqlclosecheck // collect closes them
	if err != nil {
		return nil, fmt.Errorf("list the newest requests: %w", err)
	}
	return collect(rows, "list the newest requests", func(s *string) error { return rows.Scan(s) })
}
