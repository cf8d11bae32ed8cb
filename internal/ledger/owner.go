package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
}

// Acquired records a new owner. clean is false when the record before it was
// neither absent nor released: its owner may still have a POST in flight.
func (l *Ledger) Acquired(ctx context.Context, o Owner) (clean bool, err error) {
	tx, err := l.pool.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("record an owner: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	var released bool
	err = tx.QueryRowContext(ctx,
		"SELECT released_at IS NOT NULL FROM hook_owner WHERE hook_phid = ? FOR UPDATE", o.HookPHID).Scan(&released)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("record an owner: %w", err)
	}
	clean = released || errors.Is(err, sql.ErrNoRows)
	_, err = tx.ExecContext(ctx, `
REPLACE INTO hook_owner (hook_phid, instance, task_queue, lock_connection, acquired_at, released_at)
VALUES (?, ?, ?, ?, UTC_TIMESTAMP(3), NULL)`, o.HookPHID, o.Instance, o.TaskQueue, o.Connection)
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
	rows, err := l.pool.QueryContext(ctx,
		"SELECT hook_phid, instance, task_queue, lock_connection FROM hook_owner WHERE released_at IS NULL")
	if err != nil {
		return nil, fmt.Errorf("list owners: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []Owner
	for rows.Next() {
		var o Owner
		if err := rows.Scan(&o.HookPHID, &o.Instance, &o.TaskQueue, &o.Connection); err != nil {
			return nil, fmt.Errorf("list owners: %w", err)
		}
		out = append(out, o)
	}
	return out, rows.Err()
}

// OwnedHooks lists the hooks that somebody owns.
func (l *Ledger) OwnedHooks(ctx context.Context) ([]string, error) {
	owners, err := l.Owners(ctx)
	hooks := make([]string, 0, len(owners))
	for _, o := range owners {
		hooks = append(hooks, o.HookPHID)
	}
	return hooks, err
}
