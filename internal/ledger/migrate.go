package ledger

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate makes the database if it is missing and brings its tables to this
// program's version. It returns how many steps were taken. Processes that call
// it at the same time wait for each other.
//
// MySQL commits every statement that changes a table by itself, so a step that
// was cut off has been half done: migrations must be repeatable.
func (l *Ledger) Migrate(ctx context.Context) (int, error) {
	// Connections of its own: callers that wait for the lock must not hold the
	// ones that the holder needs, and a long step must not time out.
	server, err := l.unbounded("")
	if err != nil {
		return 0, err
	}
	defer func() { _ = server.Close() }()
	conn, err := server.Conn(ctx)
	if err != nil {
		return 0, fmt.Errorf("migrate: %w", err)
	}
	defer func() { _ = conn.Close() }()
	var got sql.NullInt64
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", migrationLock, migrationWait).Scan(&got); err != nil {
		return 0, fmt.Errorf("migrate: %w", err)
	}
	if got.Int64 != 1 {
		return 0, fmt.Errorf("migrate: another process has been migrating for over %d s", migrationWait)
	}
	// Closing the connection releases the lock, however this ends.
	if err := l.createDatabase(ctx, conn); err != nil {
		return 0, err
	}
	return l.up(ctx)
}

// unbounded opens a pool that waits for answers as long as the caller does.
func (l *Ledger) unbounded(database string) (*sql.DB, error) {
	cfg := l.cfg.Clone()
	cfg.DBName, cfg.ReadTimeout = database, 0
	return open(cfg)
}

// createDatabase makes the database unless it is there: a server that refuses
// CREATE to this user is fine with one that its operator has made.
func (l *Ledger) createDatabase(ctx context.Context, conn *sql.Conn) error {
	if err := l.pool.PingContext(ctx); err == nil {
		return nil
	}
	if _, err := conn.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS "+quote(l.cfg.DBName)+
		" CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"); err != nil {
		return fmt.Errorf("create Waybill's database: %w", err)
	}
	return nil
}

func (l *Ledger) up(ctx context.Context) (int, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return 0, err
	}
	pool, err := l.unbounded(l.cfg.DBName)
	if err != nil {
		return 0, err
	}
	defer func() { _ = pool.Close() }()
	provider, err := goose.NewProvider(goose.DialectMySQL, pool, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, fmt.Errorf("migrate: %w", err)
	}
	done, err := provider.Up(ctx)
	if err != nil {
		return len(done), fmt.Errorf("migrate: %w", err)
	}
	return len(done), nil
}
