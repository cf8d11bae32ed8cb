package scenario

import (
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
}

// Journal keeps every change of a site's request rows, whoever makes it: which
// results were durably written, and when, is then no matter of anybody's log.
//
// It makes the table of this test's own Phorge a system-versioned one, as
// MariaDB has had them since 10.3. A trigger would not do: one that inserts
// makes the server answer 0 for LAST_INSERT_ID, where a claim finds its version.
type Journal struct{ phorge *devstack.Phorge }

// NewJournal starts to keep it. It must come before the site's processes.
func NewJournal(t testing.TB, p *devstack.Phorge) *Journal {
	t.Helper()
	j := &Journal{p}
	if _, err := p.DB.ExecContext(t.Context(), "ALTER TABLE "+j.table()+" ADD SYSTEM VERSIONING"); err != nil {
		t.Fatalf("scenario: journal: %v", err)
	}
	return j
}

func (j *Journal) table() string { return j.phorge.Database("herald") + ".herald_webhookrequest" }

// version is one state that a row had.
type version struct {
	row, status, result string
	epoch, since        int64 // seconds; microseconds
}

// Writes are the changes so far, oldest first.
func (j *Journal) Writes(t testing.TB) []Write {
	t.Helper()
	rows, err := j.phorge.DB.QueryContext(t.Context(), "SELECT phid, status, lastRequestResult, lastRequestEpoch,"+
		" CAST(UNIX_TIMESTAMP(row_start) * 1000000 AS SIGNED) FROM "+j.table()+" FOR SYSTEM_TIME ALL ORDER BY row_start, row_end")
	if err != nil {
		t.Fatalf("scenario: journal: %v", err)
	}
	defer func() { _ = rows.Close() }()
	var all []Write
	latest := map[string]version{}
	for rows.Next() {
		var v version
		if err := rows.Scan(&v.row, &v.status, &v.result, &v.epoch, &v.since); err != nil {
			t.Fatalf("scenario: journal: %v", err)
		}
		if before, changed := latest[v.row]; changed {
			all = append(all, v.after(before))
		}
		latest[v.row] = v
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("scenario: journal: %v", err)
	}
	return all
}

// after is the write that made a version of the one before.
func (v version) after(before version) Write {
	return Write{
		Row: v.row, At: time.UnixMicro(v.since), Before: before.status, After: v.status,
		Result: v.status != before.status || v.result != before.result || v.epoch != before.epoch,
	}
}
