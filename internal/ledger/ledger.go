// Package ledger holds the only SQL against Waybill's own database: which hooks
// an operator has paused, which process owns which hook, and the migrations
// that make the tables. Pauses are what admission reads before every attempt,
// so an error here means that nothing is sent.
//
// Workers, starters and the command import it; activities see it through
// interfaces. It never reads Phorge's tables.
package ledger

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is held on the server while tables are made or changed, so that
// processes started together do it once. Seconds waited: longer than any step.
const (
	migrationLock = "waybill:migrate"
	migrationWait = 60
)

// Ledger is a pool on Waybill's database, safe for concurrent use.
type Ledger struct {
	cfg  *mysql.Config
	pool *sql.DB
}

// Open prepares a pool without connecting.
func Open(dsn string) (*Ledger, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, errors.New("ledger: the DSN cannot be parsed")
	}
	if cfg.DBName == "" {
		return nil, errors.New("ledger: the DSN names no database")
	}
	cfg.InterpolateParams, cfg.ParseTime, cfg.Loc = true, true, time.UTC
	cfg.Logger = &mysql.NopLogger{}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	pool, err := open(cfg)
	if err != nil {
		return nil, err
	}
	return &Ledger{cfg: cfg, pool: pool}, nil
}

func open(cfg *mysql.Config) (*sql.DB, error) {
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, errors.New("ledger: the DSN cannot be used")
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(16)
	pool.SetMaxIdleConns(16)
	pool.SetConnMaxIdleTime(time.Minute)
	return pool, nil
}

// Close ends the pool.
func (l *Ledger) Close() error { return l.pool.Close() }

// Ping reports whether the tables are there and at this program's version.
func (l *Ledger) Ping(ctx context.Context) error {
	var one int
	err := l.pool.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM hook_pause LIMIT 1) t").Scan(&one)
	if err != nil {
		return fmt.Errorf("read Waybill's tables: %w", err)
	}
	return nil
}

// Migrate makes the database if it is missing and brings its tables to this
// program's version. It returns how many steps were taken. Processes that call
// it at the same time wait for each other.
func (l *Ledger) Migrate(ctx context.Context) (int, error) {
	if err := l.createDatabase(ctx); err != nil {
		return 0, err
	}
	conn, err := l.pool.Conn(ctx)
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
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK(?)", migrationLock) }()
	return l.up(ctx)
}

func (l *Ledger) up(ctx context.Context) (int, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return 0, err
	}
	provider, err := goose.NewProvider(goose.DialectMySQL, l.pool, files)
	if err != nil {
		return 0, fmt.Errorf("migrate: %w", err)
	}
	done, err := provider.Up(ctx)
	if err != nil {
		return len(done), fmt.Errorf("migrate: %w", err)
	}
	return len(done), nil
}

// createDatabase needs a connection that names no database. A server that
// refuses CREATE is fine as long as the database exists.
func (l *Ledger) createDatabase(ctx context.Context) error {
	if err := l.pool.PingContext(ctx); err == nil {
		return nil
	}
	cfg := l.cfg.Clone()
	cfg.DBName = ""
	pool, err := open(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }()
	//nolint:gosec // an identifier cannot be a parameter; it is quoted
	if _, err := pool.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS "+quote(l.cfg.DBName)+
		" CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"); err != nil {
		return fmt.Errorf("create Waybill's database: %w", err)
	}
	return nil
}
