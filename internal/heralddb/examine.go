package heralddb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"waybill/internal/herald"
)

// What follows is for `waybill doctor`: looks that change nothing.

// Column is one column of one table, and its type as the server spells it.
type Column struct{ Table, Name, Type string }

// Columns lists those of both tables that may be seen.
func (d *DB) Columns(ctx context.Context) ([]Column, error) {
	rows, err := d.pool.QueryContext(ctx,
		"SELECT table_name, column_name, column_type FROM information_schema.columns "+ofBothTables)
	if err != nil {
		return nil, fmt.Errorf("look at the columns: %w", err)
	}
	return collect(rows, "look at the columns", func(c *Column) error { return rows.Scan(&c.Table, &c.Name, &c.Type) })
}

// KeyColumn is one column of one key, in the key's order.
type KeyColumn struct{ Table, Key, Column string }

// Keys lists the keys of both tables.
func (d *DB) Keys(ctx context.Context) ([]KeyColumn, error) {
	rows, err := d.pool.QueryContext(ctx,
		"SELECT table_name, index_name, column_name FROM information_schema.statistics "+ofBothTables+
			" ORDER BY table_name, index_name, seq_in_index")
	if err != nil {
		return nil, fmt.Errorf("look at the keys: %w", err)
	}
	return collect(rows, "look at the keys", func(k *KeyColumn) error { return rows.Scan(&k.Table, &k.Key, &k.Column) })
}

const ofBothTables = "WHERE table_schema = DATABASE() AND table_name IN ('herald_webhook', 'herald_webhookrequest')"

// Server is the server's name for itself and its clock, to a microsecond.
func (d *DB) Server(ctx context.Context) (version string, clock time.Time, err error) {
	var micros int64
	err = d.pool.QueryRowContext(ctx, "SELECT VERSION(), CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)").Scan(&version, &micros)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("ask the server for its version: %w", err)
	}
	return version, time.UnixMicro(micros), nil
}

// MayWrite asks for the right to update rows, by an update that matches none. A
// refusal is no error: number is the server's for it, 0 where it is granted.
func (d *DB) MayWrite(ctx context.Context) (number uint16, err error) {
	_, err = d.pool.ExecContext(ctx, "UPDATE herald_webhookrequest SET dateModified = dateModified WHERE id = 0 AND 1 = 0")
	var refused *mysql.MySQLError
	if errors.As(err, &refused) {
		return refused.Number, nil
	}
	return 0, err
}

// Glance is a row as somebody sees it who watches the queue.
type Glance struct {
	ID                         uint64
	PHID, Hook, Status, Result string
	Called, Modified           int64 // lastRequestEpoch, dateModified
}

// Of the queue, so many rows that wait longest are watched, and of those that
// come meanwhile so many.
const watchedAtMost = 1000

const glanceColumns = "SELECT id, phid, webhookPHID, status, lastRequestResult, lastRequestEpoch, dateModified FROM herald_webhookrequest "

// Longest are the rows that wait longest.
func (d *DB) Longest(ctx context.Context) ([]Glance, error) {
	return d.glances(ctx, "WHERE status = 'queued' ORDER BY id LIMIT ?", watchedAtMost)
}

// Above are rows that were made since an id was the newest.
func (d *DB) Above(ctx context.Context, id uint64) ([]Glance, error) {
	return d.glances(ctx, "WHERE id > ? ORDER BY id LIMIT ?", id, watchedAtMost)
}

// Again looks at the same rows once more. One that is gone is not in the answer.
func (d *DB) Again(ctx context.Context, ids []uint64) ([]Glance, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return d.glances(ctx, "WHERE id IN "+list(ids))
}

func (d *DB) glances(ctx context.Context, which string, args ...any) ([]Glance, error) {
	rows, err := d.pool.QueryContext(ctx, glanceColumns+which, args...)
	if err != nil {
		return nil, fmt.Errorf("watch the queue: %w", err)
	}
	return collect(rows, "watch the queue", func(g *Glance) error {
		return rows.Scan(&g.ID, &g.PHID, &g.Hook, &g.Status, &g.Result, &g.Called, &g.Modified)
	})
}

// Destinations are the hooks that are not disabled, with their addresses. Keys stay
// in the database.
func (d *DB) Destinations(ctx context.Context) ([]herald.Hook, error) {
	rows, err := d.pool.QueryContext(ctx,
		"SELECT phid, status, webhookURI FROM herald_webhook WHERE status <> 'disabled' ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("list the hooks' addresses: %w", err)
	}
	return collect(rows, "list the hooks' addresses", func(h *herald.Hook) error { return rows.Scan(&h.PHID, &h.Status, &h.URI) })
}
