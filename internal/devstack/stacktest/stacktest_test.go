package stacktest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

func TestServersAreShared(t *testing.T) {
	if first, second := stacktest.MariaDB(t), stacktest.MariaDB(t); first != second {
		t.Error("two database servers in one test binary")
	}
	if first, second := stacktest.Temporal(t), stacktest.Temporal(t); first != second {
		t.Error("two Temporal servers in one test binary")
	}
}

func TestClientReachesTheServer(t *testing.T) {
	if _, err := stacktest.Client(t).CheckHealth(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func exists(t *testing.T, database string) bool {
	t.Helper()
	var n int
	err := stacktest.Open(t, stacktest.MariaDB(t), "").QueryRowContext(t.Context(),
		"SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", database).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

func TestDatabasesGoWithTheirTest(t *testing.T) {
	var names []string
	t.Run("inner", func(t *testing.T) {
		dsn, db := stacktest.Database(t, "mine")
		var name string
		if err := db.QueryRowContext(t.Context(), "SELECT DATABASE()").Scan(&name); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(name, "mine_") || !strings.HasSuffix(dsn, "/"+name) {
			t.Errorf("database %s at %s", name, dsn)
		}
		p, q := stacktest.Phorge(t, ""), stacktest.Phorge(t, stacktest.Name("fixed"))
		names = []string{name}
		for _, suffix := range devstack.PhorgeDatabases() {
			names = append(names, p.Database(suffix), q.Database(suffix))
		}
		for _, n := range names {
			if !exists(t, n) {
				t.Errorf("%s is missing", n)
			}
		}
	})
	for _, n := range names {
		if exists(t, n) {
			t.Errorf("%s outlived its test", n)
		}
	}
}

// A directory whose process is gone is removed by the next binary; others stay.
func TestSweep(t *testing.T) {
	root := t.TempDir()
	// 1 always runs; the other is above the kernel's highest process id (2^22).
	for _, name := range []string{"waybill-test-1-x", "waybill-test-4194305-x", "waybill-test-", "other"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	stacktest.Sweep(root)
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got := strings.Join(left, " "); got != "other waybill-test- waybill-test-1-x" {
		t.Errorf("left: %s", got)
	}
}
