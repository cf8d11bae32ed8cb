package ledger

import (
	"context"
	"fmt"
)

// Session is a process that owns hooks, as long as its lock session lives.
type Session struct {
	// Instance names one run of a process.
	Instance string
	// AliveLock is a user lock that the session holds beside those of its hooks.
	// It is free once the server has dropped the session: no clock tells the
	// living from the dead.
	AliveLock string
	// Feeds says that the process looks for its hooks' work itself.
	Feeds bool
	// Owned is how many hooks it is recorded to own. Only Sessions sets it.
	Owned int
}

// Joined records a session; it replaces the instance's session before.
func (l *Ledger) Joined(ctx context.Context, s Session) error {
	_, err := l.pool.ExecContext(ctx,
		"REPLACE INTO worker_session (instance, alive_lock, feeds, since) VALUES (?, ?, ?, UTC_TIMESTAMP(3))",
		s.Instance, s.AliveLock, s.Feeds)
	if err != nil {
		return fmt.Errorf("record a session: %w", err)
	}
	return nil
}

// Left removes exactly that session: the instance may have begun another one.
// It says whether the session was still there.
func (l *Ledger) Left(ctx context.Context, s Session) (removed bool, err error) {
	res, err := l.pool.ExecContext(ctx,
		"DELETE FROM worker_session WHERE instance = ? AND alive_lock = ?", s.Instance, s.AliveLock)
	if err != nil {
		return false, fmt.Errorf("remove a session: %w", err)
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

const sessionsSQL = `
SELECT s.instance, s.alive_lock, s.feeds, COUNT(o.hook_phid)
  FROM worker_session s LEFT JOIN hook_owner o ON o.instance = s.instance AND o.released_at IS NULL
 GROUP BY s.instance, s.alive_lock, s.feeds ORDER BY s.instance`

// Sessions lists what is recorded, the dead among them.
func (l *Ledger) Sessions(ctx context.Context) ([]Session, error) {
	rows, err := l.pool.QueryContext(ctx, sessionsSQL)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return collect(rows, "list sessions", func(s *Session) error {
		return rows.Scan(&s.Instance, &s.AliveLock, &s.Feeds, &s.Owned)
	})
}
