// Package heralddb holds the only SQL that Waybill speaks to Phorge's
// databases. It reads the hook and the request table, claims rows and writes
// results by compare-and-set, asks object tables for existence and order, and
// holds Phorge's user locks. It creates, alters and drops nothing; SELECT on
// both Herald tables and UPDATE on the request table is all it needs.
//
// It stays within what MySQL 5.7 and MariaDB 10.3 share. Time in statements is
// the server's, compared by addition or against a signed constant, because a
// subtraction of unsigned columns is an error for rows from the future.
// Workers and starters import it; activities see it through interfaces.
package heralddb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Config says where Phorge's tables are and which rule values statements use.
type Config struct {
	// DSN is a go-sql-driver DSN of the {namespace}_herald database.
	DSN string
	// Namespace is Phorge's storage namespace; it prefixes every database.
	Namespace string
	// Lease is how long a claim counts, Backoff how long a failed row rests.
	Lease, Backoff time.Duration
	// BreakerThreshold failed rows within the window open a hook's breaker.
	BreakerThreshold int
	// MaxConns bounds the pool; 0 means 16.
	MaxConns int
	// Unreadable is told once about each table that may not be read.
	Unreadable func(table string)
	// Clock times how long an unreadable table is left alone and how often a
	// hook's line is read as a whole.
	Clock func() time.Time
}

// DB is a pool on Phorge's databases. Its methods are safe for concurrent use;
// their errors are the driver's, with the statement's purpose in front.
type DB struct {
	cfg  Config
	pool *sql.DB

	mu         sync.Mutex
	unreadable map[string]time.Time
	told       map[string]bool
	newHeads   map[string]floor // ids
	newDue     map[string]floor // times of last calls
	silence    looks
	hooks      *hookList
}

// namespacePattern is what Phorge accepts as storage.default-namespace; it also
// makes quoting database names trivial.
var namespacePattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Open prepares a pool without connecting: a database that does not exist yet
// is not an error here but at the first statement.
func Open(cfg Config) (*DB, error) {
	if !namespacePattern.MatchString(cfg.Namespace) {
		return nil, errors.New("heralddb: the storage namespace may hold letters, digits, underscores and hyphens only")
	}
	if cfg.Clock == nil {
		return nil, errors.New("heralddb: a clock is needed")
	}
	pool, err := openPool(cfg.DSN, cfg.MaxConns)
	if err != nil {
		return nil, err
	}
	return &DB{
		cfg: cfg, pool: pool,
		unreadable: map[string]time.Time{}, told: map[string]bool{},
		newHeads: map[string]floor{}, newDue: map[string]floor{},
	}, nil
}

// Waits for a server that is gone, where the DSN sets none: until it takes a
// connection, and until it takes or gives the next bytes. The longest statement
// here counts a whole table, which takes seconds where rows are millions.
const (
	connectWithin = 5 * time.Second
	answerWithin  = 30 * time.Second
)

// Idle connections end after a minute, all after some: a name that has moved
// to another server is followed.
const (
	idleWithin  = time.Minute
	moveOnAfter = 5 * time.Minute
)

// openPool opens a pool whose sessions are as every statement here needs them.
func openPool(dsn string, maxConns int) (*sql.DB, error) {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		// The driver's text may repeat the DSN, password included.
		return nil, errors.New("heralddb: the DSN cannot be parsed")
	}
	normalise(c)
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, errors.New("heralddb: the DSN cannot be used")
	}
	if maxConns == 0 {
		maxConns = 16
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(maxConns)
	pool.SetMaxIdleConns(maxConns)
	pool.SetConnMaxIdleTime(idleWithin)
	pool.SetConnMaxLifetime(moveOnAfter)
	return pool, nil
}

// normalise overrides what neither an operator's DSN nor a server's defaults
// may decide: statements commit by themselves, a value that does not fit is an
// error and never cut, affected rows are changed rows, and text is UTF-8. One
// round trip per statement instead of three comes with interpolation.
func normalise(c *mysql.Config) {
	c.InterpolateParams, c.ClientFoundRows, c.MultiStatements = true, false, false
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	c.Params["autocommit"], c.Params["sql_mode"] = "1", "'STRICT_ALL_TABLES'"
	// The option cannot fail on a valid name.
	_ = c.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin"))
	c.Logger = &mysql.NopLogger{}
	c.Timeout = orElse(c.Timeout, connectWithin)
	c.ReadTimeout = orElse(c.ReadTimeout, answerWithin)
	c.WriteTimeout = orElse(c.WriteTimeout, answerWithin)
}

func orElse(set, otherwise time.Duration) time.Duration {
	if set == 0 {
		return otherwise
	}
	return set
}

// Ping reports whether the Herald tables can be read: not only that a server
// answers, but that there is work to be had from it.
func (d *DB) Ping(ctx context.Context) error {
	var n int
	err := d.pool.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM herald_webhook LIMIT 1) t").Scan(&n)
	if err == nil {
		err = d.pool.QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM herald_webhookrequest LIMIT 1) t").Scan(&n)
	}
	if err != nil {
		return fmt.Errorf("read the Herald tables: %w", err)
	}
	return nil
}

// Close ends the pool.
func (d *DB) Close() error { return d.pool.Close() }

// seconds is a duration in the database's unit, rounded up: a lease or a backoff
// may last longer than it says, never shorter.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
