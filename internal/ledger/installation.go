package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Installation names what all processes on this database are together, "" when
// it has no name yet. Another installation may share the Temporal namespace.
func (l *Ledger) Installation(ctx context.Context) (string, error) {
	var id string
	err := l.pool.QueryRowContext(ctx, "SELECT id FROM installation WHERE one = 1").Scan(&id)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read the installation's name: %w", err)
	}
	return id, nil
}

// Name gives the installation a name, unless another process was faster, and
// returns the one that stands.
func (l *Ledger) Name(ctx context.Context, id string) (string, error) {
	_, err := l.pool.ExecContext(ctx, "INSERT INTO installation (one, id) VALUES (1, ?) ON DUPLICATE KEY UPDATE one = one", id)
	if err != nil {
		return "", fmt.Errorf("write the installation's name: %w", err)
	}
	return l.Installation(ctx)
}
