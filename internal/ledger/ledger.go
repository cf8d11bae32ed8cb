// Package ledger holds the only SQL against Waybill's own database: which hooks
// an operator has paused or released, which process owns which hook and which
// processes there are, what has shown that Phorge's site is silent, what the
// installation is called, and the migrations that make the tables. Pauses are
// what admission reads before every attempt, so an error here means that nothing
// is sent.
//
// Workers, starters and the command import it; activities see it through
// interfaces. It never reads Phorge's tables.
package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// migrationLock is held on the server while tables are made or changed, so that
// processes started together do it once. Seconds waited: longer than any step.
const (
	migrationLock = "waybill:migrate"
	migrationWait = 60
)

// Sizes and waits of a pool, where the DSN sets none. Admission reads a pause
// before each attempt, and owners are few: more connections would idle.
const (
	maxConns      = 16
	connectWithin = 5 * time.Second
	answerWithin  = 30 * time.Second
	idleWithin    = time.Minute
	// moveOnAfter ends every connection some time, so that a database's name
	// that moved to another server is followed.
	moveOnAfter = 5 * time.Minute
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
		// The driver's text may repeat the DSN, password included.
		return nil, errors.New("ledger: the DSN cannot be parsed")
	}
	if cfg.DBName == "" {
		return nil, errors.New("ledger: the DSN names no database")
	}
	normalise(cfg)
	pool, err := open(cfg)
	if err != nil {
		return nil, err
	}
	return &Ledger{cfg: cfg, pool: pool}, nil
}

// normalise overrides what neither an operator's DSN nor a server's defaults
// may decide, and bounds waiting for a server that is gone.
func normalise(cfg *mysql.Config) {
	cfg.InterpolateParams, cfg.ParseTime, cfg.Loc = true, true, time.UTC
	cfg.Logger = &mysql.NopLogger{}
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	cfg.Params["autocommit"], cfg.Params["sql_mode"] = "1", "'STRICT_ALL_TABLES'"
	// A transaction whose process is cut off in it must not keep its rows locked
	// for the server's default of hours, nor somebody else's hold up a round.
	cfg.Params["wait_timeout"], cfg.Params["innodb_lock_wait_timeout"] = "120", "1"
	// The option cannot fail on a valid name.
	_ = cfg.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin"))
	if cfg.Timeout == 0 {
		cfg.Timeout = connectWithin
	}
	if cfg.ReadTimeout == 0 {
		cfg.ReadTimeout = answerWithin
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = answerWithin
	}
}

func open(cfg *mysql.Config) (*sql.DB, error) {
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, errors.New("ledger: the DSN cannot be used")
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(maxConns)
	pool.SetMaxIdleConns(maxConns)
	pool.SetConnMaxIdleTime(idleWithin)
	pool.SetConnMaxLifetime(moveOnAfter)
	return pool, nil
}

// Close ends the pool.
func (l *Ledger) Close() error { return l.pool.Close() }

// Ping reports whether the tables are there and may be read.
func (l *Ledger) Ping(ctx context.Context) error {
	var one int
	err := l.pool.QueryRowContext(ctx, `
SELECT (SELECT COUNT(*) FROM (SELECT released FROM hook_pause LIMIT 1) p) +
       (SELECT COUNT(*) FROM (SELECT 1 FROM silence_evidence LIMIT 1) s) +
       (SELECT COUNT(*) FROM (SELECT 1 FROM worker_session LIMIT 1) w) +
       (SELECT COUNT(*) FROM (SELECT 1 FROM installation LIMIT 1) i) +
       (SELECT COUNT(*) FROM (SELECT waits_until FROM hook_owner LIMIT 1) o)`).Scan(&one)
	if err != nil {
		return fmt.Errorf("read Waybill's tables: %w", err)
	}
	return nil
}

// The server's numbers for what a migration makes: no such database, column,
// table.
const (
	noDatabase = 1049
	noColumn   = 1054
	noTable    = 1146
)

// Unprepared says of an error that the server answers and lacks what Migrate
// makes: it has never run there, or only an older version's.
func Unprepared(err error) bool {
	var said *mysql.MySQLError
	if !errors.As(err, &said) {
		return false
	}
	return said.Number == noDatabase || said.Number == noColumn || said.Number == noTable
}

// collect reads an answer to its end and closes it. An error has the statement's
// purpose in front: an answer may break off in its middle.
func collect[T any](rows *sql.Rows, purpose string, scan func(*T) error) ([]T, error) {
	defer func() { _ = rows.Close() }()
	var out []T
	for rows.Next() {
		var v T
		if err := scan(&v); err != nil {
			return nil, fmt.Errorf("%s: %w", purpose, err)
		}
		out = append(out, v)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", purpose, err)
	}
	return out, nil
}
