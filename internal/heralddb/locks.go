package heralddb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// SessionTimeout is the lock session's wait_timeout: how long the server keeps
// a silent session, and with it the locks, before it lets Phorge have them.
const SessionTimeout = 10 * time.Second

// pingTimeout bounds one ping; a session that needs longer is as good as lost.
const pingTimeout = 2 * time.Second

// lockServer says where an operator has named that server: the driver's words
// about a refused connection do not.
const lockServer = "WAYBILL_HERALD_LOCK_DSN (WAYBILL_HERALD_DSN where that is unset)"

// LockSession is one connection that holds user locks, as Phorge's own worker
// does while it calls a hook. Several locks on one connection need MySQL 5.7.5
// or MariaDB 10.0.2. A session is used by one goroutine at a time; once any
// method failed its locks must be taken for lost.
type LockSession struct {
	pool       *sql.DB
	conn       *sql.Conn
	connection uint64
}

// OpenLockSession connects to the server where Phorge's locks live.
func OpenLockSession(ctx context.Context, dsn string) (*LockSession, error) {
	pool, err := openPool(dsn, 1)
	if err != nil {
		return nil, err
	}
	s := &LockSession{pool: pool}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the lock session on the server of %s: %w", lockServer, err), pool.Close())
	}
	return s, nil
}

func (s *LockSession) connect(ctx context.Context) error {
	conn, err := s.pool.Conn(ctx)
	if err != nil {
		return err
	}
	s.conn = conn
	_, err = conn.ExecContext(ctx, "SET SESSION wait_timeout = ?", seconds(SessionTimeout))
	if err == nil {
		err = conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&s.connection)
	}
	if err != nil {
		// A pool's Close leaves a connection that is lent out as it is.
		return errors.Join(err, conn.Close())
	}
	return nil
}

// Connection is the server's id of this session, as IS_USED_LOCK returns it.
func (s *LockSession) Connection() uint64 { return s.connection }

// Acquire asks for a lock without waiting. false: somebody else has it.
func (s *LockSession) Acquire(ctx context.Context, name string) (bool, error) {
	var got sql.NullInt64
	if err := s.query(ctx, "SELECT GET_LOCK(?, 0)", &got, name); err != nil {
		return false, fmt.Errorf("take a lock: %w", err)
	}
	return got.Int64 == 1, nil
}

// Release gives a lock back. One that the session does not hold stays as it is.
func (s *LockSession) Release(ctx context.Context, name string) error {
	var got sql.NullInt64
	if err := s.query(ctx, "SELECT RELEASE_LOCK(?)", &got, name); err != nil {
		return fmt.Errorf("release a lock: %w", err)
	}
	return nil
}

// Held reports whether any session holds a lock.
func (s *LockSession) Held(ctx context.Context, name string) (bool, error) {
	holder, err := s.Holder(ctx, name)
	return holder != 0, err
}

// Holder is the server's id of the session that holds a lock, 0 for none.
func (s *LockSession) Holder(ctx context.Context, name string) (connection uint64, err error) {
	var holder sql.NullInt64
	if err := s.query(ctx, "SELECT IS_USED_LOCK(?)", &holder, name); err != nil {
		return 0, fmt.Errorf("look at a lock: %w", err)
	}
	return uint64(holder.Int64), nil
}

// Who is a session's user and host, empty where there is none or where the server
// does not tell: it shows sessions of others to users with the right PROCESS only.
func (s *LockSession) Who(ctx context.Context, connection uint64) (string, error) {
	var who string
	err := s.query(ctx, "SELECT CONCAT(user, '@', host) FROM information_schema.processlist WHERE id = ?", &who, connection)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return who, err
}

// Ping keeps the session alive and shows that it still is this session.
func (s *LockSession) Ping(ctx context.Context) error {
	var id uint64
	if err := s.query(ctx, "SELECT CONNECTION_ID()", &id); err != nil {
		return fmt.Errorf("ping the lock session: %w", err)
	}
	if id != s.connection {
		return errors.New("ping the lock session: another connection answered")
	}
	return nil
}

// query outlives its caller's context by at most pingTimeout: the driver cuts a
// connection whose context ends under way, and every lock would go with it.
func (s *LockSession) query(ctx context.Context, query string, into any, args ...any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
	defer cancel()
	return s.conn.QueryRowContext(ctx, query, args...).Scan(into)
}

// Close ends the session; the server frees its locks.
func (s *LockSession) Close() error {
	return errors.Join(s.conn.Close(), s.pool.Close())
}
