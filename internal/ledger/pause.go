package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"waybill/internal/herald"
)

// Column widths of hook_pause, in characters. An operator's longer text is cut:
// refusing a pause over its wording would leave the hook running.
const (
	maxBy     = 128
	maxReason = 1024
)

// AllHooks in place of a hook's PHID pauses or releases every hook that has no
// order of its own, also those that are created later.
const AllHooks = "*"

// pauseColumns are read in this order by scanPause.
const pauseColumns = "SELECT hook_phid, paused_at, paused_by, reason, released FROM hook_pause"

func scanPause(scan func(...any) error, p *herald.Pause) error {
	return scan(&p.HookPHID, &p.At, &p.By, &p.Reason, &p.Released)
}

// Paused returns the pause or release that holds a hook, its own or that of all
// hooks; nil when there is none.
func (l *Ledger) Paused(ctx context.Context, hookPHID string) (*herald.Pause, error) {
	var p herald.Pause
	err := scanPause(l.pool.QueryRowContext(ctx,
		pauseColumns+" WHERE hook_phid IN (?, ?) ORDER BY hook_phid DESC LIMIT 1", hookPHID, AllHooks).Scan, &p)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a pause: %w", err)
	}
	return &p, nil
}

// Pauses lists every pause and release.
func (l *Ledger) Pauses(ctx context.Context) ([]herald.Pause, error) {
	rows, err := l.pool.QueryContext(ctx, pauseColumns) //nolint:sqlclosecheck // collect closes them
	if err != nil {
		return nil, fmt.Errorf("list pauses: %w", err)
	}
	return collect(rows, "list pauses", func(p *herald.Pause) error { return scanPause(rows.Scan, p) })
}

// setPauseSQL lets the first of two equal orders stand, so that a repeated
// signal does not rewrite who gave it and when; a pause and a release replace
// each other. The assignments are made from left to right: released, by which
// the others judge, is the last.
const setPauseSQL = `
INSERT INTO hook_pause (hook_phid, paused_at, paused_by, reason, released) VALUES (?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE
  paused_at = IF(released = VALUES(released), paused_at, VALUES(paused_at)),
  paused_by = IF(released = VALUES(released), paused_by, VALUES(paused_by)),
  reason = IF(released = VALUES(released), reason, VALUES(reason)),
  released = VALUES(released)`

// SetPause writes a pause, or a release.
func (l *Ledger) SetPause(ctx context.Context, p herald.Pause) error {
	_, err := l.pool.ExecContext(ctx, setPauseSQL,
		p.HookPHID, p.At.UTC(), cut(p.By, maxBy), cut(p.Reason, maxReason), p.Released)
	if err != nil {
		return fmt.Errorf("write a pause: %w", err)
	}
	return nil
}

// ReleasedHooks tells which hooks are given back to Phorge. A hook's own order goes
// before that for all hooks.
func (l *Ledger) ReleasedHooks(ctx context.Context) (released func(hookPHID string) bool, err error) {
	all, err := l.Pauses(ctx)
	if err != nil {
		return nil, err
	}
	orders := make(map[string]bool, len(all))
	for _, p := range all {
		orders[p.HookPHID] = p.Released
	}
	return func(hookPHID string) bool {
		own, ok := orders[hookPHID]
		return own || (!ok && orders[AllHooks])
	}, nil
}

// ClearPause ends a pause or a release, and says whether there was one.
func (l *Ledger) ClearPause(ctx context.Context, hookPHID string) (ended bool, err error) {
	return l.clear(ctx, "DELETE FROM hook_pause WHERE hook_phid = ?", hookPHID)
}

// EndPause ends this pause or release, as it was read, and no other that was
// given since.
func (l *Ledger) EndPause(ctx context.Context, p herald.Pause) error {
	_, err := l.clear(ctx, "DELETE FROM hook_pause WHERE hook_phid = ? AND paused_at = ? AND paused_by = ? AND reason = ? AND released = ?",
		p.HookPHID, p.At.UTC(), p.By, p.Reason, p.Released)
	return err
}

func (l *Ledger) clear(ctx context.Context, query string, args ...any) (ended bool, err error) {
	res, err := l.pool.ExecContext(ctx, query, args...)
	if err != nil {
		return false, fmt.Errorf("clear a pause: %w", err)
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

// cut keeps the first n characters and what is valid of them.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}

// quote quotes an identifier.
func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
