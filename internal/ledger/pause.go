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

// AllHooks in place of a hook's PHID pauses every hook, also those that are
// created later.
const AllHooks = "*"

// Paused returns the pause that holds a hook, its own or that of all hooks; nil
// when there is none.
func (l *Ledger) Paused(ctx context.Context, hookPHID string) (*herald.Pause, error) {
	var p herald.Pause
	err := l.pool.QueryRowContext(ctx,
		"SELECT hook_phid, paused_at, paused_by, reason FROM hook_pause WHERE hook_phid IN (?, ?) ORDER BY hook_phid DESC LIMIT 1",
		hookPHID, AllHooks).Scan(&p.HookPHID, &p.At, &p.By, &p.Reason)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a pause: %w", err)
	}
	return &p, nil
}

// Pauses lists every pause.
func (l *Ledger) Pauses(ctx context.Context) ([]herald.Pause, error) {
	rows, err := l.pool.QueryContext(ctx, "SELECT hook_phid, paused_at, paused_by, reason FROM hook_pause")
	if err != nil {
		return nil, fmt.Errorf("list pauses: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []herald.Pause
	for rows.Next() {
		var p herald.Pause
		if err := rows.Scan(&p.HookPHID, &p.At, &p.By, &p.Reason); err != nil {
			return nil, fmt.Errorf("list pauses: %w", err)
		}
		out = append(out, p)
	}
	return out, rows.Err()
}

// SetPause writes a pause; the first one of a hook stands, so that a repeated
// signal does not rewrite who paused it and when.
func (l *Ledger) SetPause(ctx context.Context, p herald.Pause) error {
	_, err := l.pool.ExecContext(ctx,
		"INSERT INTO hook_pause (hook_phid, paused_at, paused_by, reason) VALUES (?, ?, ?, ?) "+
			"ON DUPLICATE KEY UPDATE hook_phid = hook_phid",
		p.HookPHID, p.At.UTC(), cut(p.By, maxBy), cut(p.Reason, maxReason))
	if err != nil {
		return fmt.Errorf("write a pause: %w", err)
	}
	return nil
}

// ClearPause ends a pause; none to end is no error.
func (l *Ledger) ClearPause(ctx context.Context, hookPHID string) error {
	if _, err := l.pool.ExecContext(ctx, "DELETE FROM hook_pause WHERE hook_phid = ?", hookPHID); err != nil {
		return fmt.Errorf("clear a pause: %w", err)
	}
	return nil
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
