package ledger_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack/stacktest"
	"waybill/internal/ledger"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

// name is a database of the test's own that does not exist yet.
func name(t *testing.T) string {
	t.Helper()
	n := stacktest.Name("waybill")
	db := stacktest.Open(t, stacktest.MariaDB(t), "")
	t.Cleanup(func() {
		// The pool of the test is closed by now.
		again := stacktest.Open(t, stacktest.MariaDB(t), "")
		_, _ = again.ExecContext(context.Background(), "DROP DATABASE IF EXISTS `"+n+"`")
	})
	must(t, db.PingContext(t.Context()))
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dsn string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(dsn)
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// migrated is a ledger with its tables, and a way to look behind it.
func migrated(t *testing.T) (l *ledger.Ledger, exec func(query string, args ...any)) {
	t.Helper()
	n := name(t)
	l = open(t, stacktest.MariaDB(t).DSN(n))
	_, err := l.Migrate(t.Context())
	must(t, err)
	db := stacktest.Open(t, stacktest.MariaDB(t), n)
	return l, func(query string, args ...any) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), query, args...)
		must(t, err)
	}
}

// moment is a time that survives the column's milliseconds.
func moment() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC) }

func noSecret(t *testing.T, err error, secret string) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("%q shows %q", err, secret)
	}
}

func clearPause(t *testing.T, l *ledger.Ledger, hookPHID string) {
	t.Helper()
	_, err := l.ClearPause(t.Context(), hookPHID)
	must(t, err)
}
