package scenario

import (
	"context"
	"testing"
	"time"
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
// It is a trigger on the table of this test's own Phorge, writing into a
// database beside it. Its table has no AUTO_INCREMENT: the claim gets its
// version through LAST_INSERT_ID.
type Journal struct{ site *Site }

// NewJournal starts to keep it. It must come before the site's processes.
func NewJournal(t testing.TB, s *Site) *Journal {
	t.Helper()
	j := &Journal{s}
	for _, q := range []string{
		"CREATE DATABASE " + j.database() + " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
		"CREATE TABLE " + j.table() + " (phid varbinary(64) NOT NULL, at decimal(20,6) NOT NULL," +
			" before_status varchar(32) NOT NULL, after_status varchar(32) NOT NULL, is_result tinyint NOT NULL) ENGINE=InnoDB",
		"CREATE TRIGGER " + s.Database("herald") + ".keeps_journal AFTER UPDATE ON " +
			s.Database("herald") + ".herald_webhookrequest FOR EACH ROW INSERT INTO " + j.table() +
			" VALUES (NEW.phid, UNIX_TIMESTAMP(SYSDATE(6)), OLD.status, NEW.status, NEW.status <> OLD.status" +
			" OR NEW.lastRequestResult <> OLD.lastRequestResult OR NEW.lastRequestEpoch <> OLD.lastRequestEpoch)",
	} {
		if _, err := s.DB.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("scenario: journal: %v", err)
		}
	}
	t.Cleanup(func() { // the test's context has ended
		_, _ = s.DB.ExecContext(context.Background(), "DROP DATABASE "+j.database())
	})
	return j
}

func (j *Journal) database() string { return j.site.Namespace + "_journal" }
func (j *Journal) table() string    { return j.database() + ".row_write" }

// Writes are the changes so far, oldest first.
func (j *Journal) Writes(t testing.TB) []Write {
	t.Helper()
	rows, err := j.site.DB.QueryContext(t.Context(),
		"SELECT phid, CAST(at * 1000000 AS SIGNED), before_status, after_status, is_result FROM "+j.table()+" ORDER BY at")
	if err != nil {
		t.Fatalf("scenario: journal: %v", err)
	}
	defer func() { _ = rows.Close() }()
	var all []Write
	for rows.Next() {
		var w Write
		var micros int64
		if err := rows.Scan(&w.Row, &micros, &w.Before, &w.After, &w.Result); err != nil {
			t.Fatalf("scenario: journal: %v", err)
		}
		w.At = time.UnixMicro(micros)
		all = append(all, w)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("scenario: journal: %v", err)
	}
	return all
}
