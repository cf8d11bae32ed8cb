package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Owner is the process that holds a hook's lock, and where its tasks go.
type Owner struct {
	HookPHID string
	// Instance names one run of a process.
	Instance string
	// TaskQueue is the Temporal task queue that only this instance polls.
	TaskQueue string
	// Connection is the server's id of the session that holds the lock. With
	// Instance it makes a late release recognisable as somebody else's.
	Connection uint64
	// Waits is how long from now on nothing is sent, because claims of a former
	// owner may still be under way; 0 as a rule. OwnerOf does not read it.
	Waits time.Duration
	// Lease is what Acquired records to be waited for where the hook was not
	// handed over. No answer has it.
	Lease time.Duration
}

// Acquired records a new owner. clean is false when the record before it was
// another instance's and not released: that one may still have a POST in flight.
// What an instance itself had in flight on an earlier session, it knows.
func (l *Ledger) Acquired(ctx context.Context, o Owner) (clean bool, err error) {
	for {
		clean, err = l.acquired(ctx, o)
		// Two that write the first records of neighbouring hooks lock the same gap
		// of the index, and the server ends one of them: nothing was written.
		var refused *mysql.MySQLError
		if !errors.As(err, &refused) || refused.Number != deadlock {
			return clean, err
		}
	}
}

// deadlock is ER_LOCK_DEADLOCK.
const deadlock = 1213

func (l *Ledger) acquired(ctx context.Context, o Owner) (clean bool, err error) {
	tx, err := l.pool.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("record an owner: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	err = tx.QueryRowContext(ctx,
		"SELECT released_at IS NOT NULL OR instance = ? FROM hook_owner WHERE hook_phid = ? FOR UPDATE",
		o.Instance, o.HookPHID).Scan(&clean)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("record an owner: %w", err)
	}
	clean = clean || errors.Is(err, sql.ErrNoRows)
	waits := o.Waits
	if !clean {
		waits = max(waits, o.Lease)
	}
	_, err = tx.ExecContext(ctx, `
REPLACE INTO hook_owner (hook_phid, instance, task_queue, lock_connection, acquired_at, released_at, waits_until)
VALUES (?, ?, ?, ?, UTC_TIMESTAMP(3), NULL, TIMESTAMPADD(MICROSECOND, NULLIF(?, 0), UTC_TIMESTAMP(3)))`,
		o.HookPHID, o.Instance, o.TaskQueue, o.Connection, waits.Microseconds())
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return false, fmt.Errorf("record an owner: %w", err)
	}
	return clean, nil
}

// Released marks one's own record as handed over cleanly. It compares instance
// and connection, so a late call never clears the record of the next owner.
func (l *Ledger) Released(ctx context.Context, o Owner) error {
	_, err := l.pool.ExecContext(ctx, `
UPDATE hook_owner SET released_at = UTC_TIMESTAMP(3)
 WHERE hook_phid = ? AND instance = ? AND lock_connection = ? AND released_at IS NULL`,
		o.HookPHID, o.Instance, o.Connection)
	if err != nil {
		return fmt.Errorf("release an owner record: %w", err)
	}
	return nil
}

// OwnerOf returns who owns a hook, nil when nobody does.
func (l *Ledger) OwnerOf(ctx context.Context, hookPHID string) (*Owner, error) {
	o := Owner{HookPHID: hookPHID}
	err := l.pool.QueryRowContext(ctx, `
SELECT instance, task_queue, lock_connection FROM hook_owner
 WHERE hook_phid = ? AND released_at IS NULL`, hookPHID).Scan(&o.Instance, &o.TaskQueue, &o.Connection)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read an owner: %w", err)
	}
	return &o, nil
}

// Owners lists the current owners of all hooks.
func (l *Ledger) Owners(ctx context.Context) ([]Owner, error) {
	rows, err := l.pool.QueryContext(ctx, `
SELECT hook_phid, instance, task_queue, lock_connection,
       COALESCE(GREATEST(0, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(3), waits_until)), 0)
  FROM hook_owner WHERE released_at IS NULL`)
	if err != nil {
		return nil, fmt.Errorf("list owners: %w", err)
	}
	return collect(rows, "list owners", func(o *Owner) error {
		var waits int64
		err := rows.Scan(&o.HookPHID, &o.Instance, &o.TaskQueue, &o.Connection, &waits)
		o.Waits = time.Duration(waits) * time.Microsecond
		return err
	})
}

const unfedSQL = `
SELECT o.hook_phid FROM hook_owner o JOIN worker_session s ON s.instance = o.instance
 WHERE o.released_at IS NULL AND NOT s.feeds`

// UnfedHooks lists the hooks whose owners do not look for work themselves: a
// starter elsewhere has to.
func (l *Ledger) UnfedHooks(ctx context.Context) ([]string, error) {
	rows, err := l.pool.QueryContext(ctx, unfedSQL) //nolint:sqlclosecheck // collect closes them
	if err != nil {
		return nil, fmt.Errorf("list hooks without a feed: %w", err)
	}
	return collect(rows, "list hooks without a feed", func(hook *string) error { return rows.Scan(hook) })
}
