package scenario

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"waybill/internal/devstack"
)

// Write is one committed change of a request's row.
type Write struct {
	Row string
	At  time.Time
	// Before and After are the row's status.
	Before, After string
	// Result is set when it changed the row's result; otherwise it is a claim.
	Result bool
	// Uncalled is set when it ended the row without a call, as Phorge does by a
	// hook's settings, whoever has claimed the row.
	Uncalled bool
}

// Journal keeps every change of a site's request rows, whoever makes it: which
// results were durably written, and when, is then no matter of anybody's log.
//
// It makes the table of this test's own Phorge a system-versioned one, as
// MariaDB has had them since 10.3. A trigger would not do: one that inserts
// makes the server answer 0 for LAST_INSERT_ID, where a claim finds its version.
// Versions are ordered by transaction and not by time, so that none is missing
// where the server's clock is put back.
type Journal struct {
	phorge *devstack.Phorge
	now    func() time.Time

	mu    sync.Mutex
	steps []step // where the server's clock was moved, oldest first
}

// step is a move of the server's clock: transactions above one are dated so far
// ahead of this process's clock.
type step struct {
	above uint64
	ahead time.Duration
	at    time.Time // by this process's clock
}

// versioned adds what MariaDB needs to keep versions by transaction. The columns
// are invisible: no statement of anybody's meets them.
const versioned = " ADD COLUMN begun BIGINT UNSIGNED GENERATED ALWAYS AS ROW START INVISIBLE," +
	" ADD COLUMN ended BIGINT UNSIGNED GENERATED ALWAYS AS ROW END INVISIBLE," +
	" ADD PERIOD FOR SYSTEM_TIME(begun, ended), ADD SYSTEM VERSIONING"

// NewJournal starts to keep it. It must come before the site's processes.
func NewJournal(t testing.TB, p *devstack.Phorge, now func() time.Time) *Journal {
	t.Helper()
	j := &Journal{phorge: p, now: now}
	if _, err := p.DB.ExecContext(t.Context(), "ALTER TABLE "+j.table()+versioned); err != nil {
		t.Fatalf("scenario: journal: %v", err)
	}
	return j
}

// Step moves the server's clock: set does it, to so far ahead of this process's
// clock. Nobody writes a request meanwhile.
func (j *Journal) Step(ctx context.Context, ahead time.Duration, set func(time.Duration) error) error {
	conn, err := j.phorge.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "LOCK TABLES "+j.table()+" READ, "+registry+" READ"); err != nil {
		return err
	}
	s := step{ahead: ahead, at: j.now()}
	err = errors.Join(set(ahead), conn.QueryRowContext(ctx, "SELECT MAX(transaction_id) FROM "+registry).Scan(&s.above))
	_, unlocked := conn.ExecContext(ctx, "UNLOCK TABLES")
	j.mu.Lock()
	defer j.mu.Unlock()
	j.steps = append(j.steps, s)
	return errors.Join(err, unlocked)
}

// Stepped are the moments at which the clock was moved.
func (j *Journal) Stepped() (all []time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.steps {
		all = append(all, s.at)
	}
	return all
}

// ahead is how far the server's clock was ahead when a transaction was made.
func (j *Journal) ahead(transaction uint64) (ahead time.Duration) {
	for _, s := range j.steps {
		if transaction > s.above {
			ahead = s.ahead
		}
	}
	return ahead
}

// registry is where MariaDB keeps the times of transactions.
const registry = "mysql.transaction_registry"

func (j *Journal) table() string { return j.phorge.Database("herald") + ".herald_webhookrequest" }

// version is one state that a row had.
type version struct {
	row, status, result string
	transaction         uint64
	epoch, since        int64 // seconds; microseconds, by the server's clock
}

// Writes are the changes so far, oldest first.
func (j *Journal) Writes(t testing.TB) []Write {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	rows, err := j.phorge.DB.QueryContext(t.Context(), "SELECT r.phid, r.status, r.lastRequestResult, r.lastRequestEpoch,"+
		" r.begun, CAST(UNIX_TIMESTAMP(x.commit_timestamp) * 1000000 AS SIGNED) FROM "+j.table()+" FOR SYSTEM_TIME ALL r"+
		" JOIN "+registry+" x ON x.transaction_id = r.begun ORDER BY r.begun, r.ended")
	if err != nil {
		t.Fatalf("scenario: journal: %v", err)
	}
	defer func() { _ = rows.Close() }()
	var all []Write
	latest := map[string]version{}
	for rows.Next() {
		var v version
		if err := rows.Scan(&v.row, &v.status, &v.result, &v.epoch, &v.transaction, &v.since); err != nil {
			t.Fatalf("scenario: journal: %v", err)
		}
		at := time.UnixMicro(v.since).Add(-j.ahead(v.transaction))
		if before, changed := latest[v.row]; changed {
			all = append(all, v.after(before, at))
		}
		latest[v.row] = v
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("scenario: journal: %v", err)
	}
	return all
}

// after is the write that made a version of the one before.
func (v version) after(before version, at time.Time) Write {
	return Write{
		Row: v.row, At: at, Before: before.status, After: v.status,
		Result:   v.status != before.status || v.result != before.result || v.epoch != before.epoch,
		Uncalled: v.status == "failed" && v.result == "none",
	}
}
