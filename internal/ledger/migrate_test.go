package ledger_test

import (
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"waybill/internal/devstack/stacktest"
	"waybill/internal/herald"
	"waybill/internal/ledger"
)

func TestMigrateMakesDatabaseAndTables(t *testing.T) {
	l := open(t, stacktest.MariaDB(t).DSN(name(t)))
	if l.Ping(t.Context()) == nil {
		t.Error("ping before there is a database")
	}
	n, err := l.Migrate(t.Context())
	if err != nil || n == 0 {
		t.Fatalf("first: %d steps, %v", n, err)
	}
	must(t, l.Ping(t.Context()))
	must(t, l.SetPause(t.Context(), herald.Pause{HookPHID: "h", At: moment()}))
	if n, err := l.Migrate(t.Context()); n != 0 || err != nil {
		t.Errorf("second: %d steps, %v", n, err)
	}
	if p, err := l.Paused(t.Context(), "h"); p == nil || err != nil {
		t.Errorf("after the second: %v, %v", p, err)
	}
}

// More callers than a pool has connections, on one pool and on several: each
// step is taken once, and nobody waits for a connection that a waiter holds.
func TestManyMigrateAtOnce(t *testing.T) {
	dsn := stacktest.MariaDB(t).DSN(name(t))
	pools := []*ledger.Ledger{open(t, dsn), open(t, dsn), open(t, dsn)}
	const each = 20
	steps := make(chan int, each*len(pools))
	var group sync.WaitGroup
	for _, l := range pools {
		for range each {
			group.Go(func() {
				n, err := l.Migrate(t.Context())
				if err != nil {
					t.Error(err)
				}
				steps <- n
			})
		}
	}
	group.Wait()
	close(steps)
	worked := 0
	for n := range steps {
		if n > 0 {
			worked++
		}
	}
	if worked != 1 {
		t.Errorf("%d callers took steps, want 1", worked)
	}
	must(t, pools[0].Ping(t.Context()))
}

// MySQL cannot roll a CREATE TABLE back: a process killed between two of them
// leaves the first, and the next one must get over it.
func TestMigrateGoesOnAfterACrash(t *testing.T) {
	done, exec := migrated(t)
	must(t, done.SetPause(t.Context(), herald.Pause{HookPHID: "kept", At: moment()}))
	exec("DROP TABLE hook_owner")
	exec("DELETE FROM goose_db_version WHERE version_id > 0")
	if done.Ping(t.Context()) == nil {
		t.Error("ping with a table missing")
	}
	if n, err := done.Migrate(t.Context()); n == 0 || err != nil {
		t.Fatalf("%d steps, %v", n, err)
	}
	must(t, done.Ping(t.Context()))
	if p, err := done.Paused(t.Context(), "kept"); p == nil || err != nil {
		t.Errorf("the pause that was there: %v, %v", p, err)
	}
}

// A step that was cut off behind its first half is taken again.
func TestMigrateAddsAColumnOnce(t *testing.T) {
	done, exec := migrated(t)
	exec("DROP TABLE silence_evidence")
	exec("DELETE FROM goose_db_version WHERE version_id >= 3")
	must(t, done.SetPause(t.Context(), herald.Pause{HookPHID: "kept", At: moment(), Released: true}))
	if n, err := done.Migrate(t.Context()); n == 0 || err != nil {
		t.Fatalf("%d steps, %v", n, err)
	}
	must(t, done.Ping(t.Context()))
	if p, err := done.Paused(t.Context(), "kept"); p == nil || err != nil || !p.Released {
		t.Errorf("the release that was there: %v, %v", p, err)
	}
}

// An operator may have made the database, for a user who may make none.
func TestMigrateWithoutTheRightToMakeDatabases(t *testing.T) {
	m := stacktest.MariaDB(t)
	root := stacktest.Open(t, m, "")
	user, n := stacktest.Name("u"), name(t)
	exec := func(q string) { _, err := root.ExecContext(t.Context(), q); must(t, err) }
	exec("CREATE USER '" + user + "'@'127.0.0.1' IDENTIFIED BY 'geheim'")
	t.Cleanup(func() { _, _ = root.Exec("DROP USER '" + user + "'@'127.0.0.1'") })
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd, c.DBName = "tcp", m.Addr(), user, "geheim", n
	l := open(t, c.FormatDSN())
	_, err := l.Migrate(t.Context())
	if err == nil {
		t.Error("migrated without database and without the right to make it")
	}
	noSecret(t, err, "geheim")
	exec("CREATE DATABASE `" + n + "`")
	exec("GRANT ALL ON `" + n + "`.* TO '" + user + "'@'127.0.0.1'")
	if steps, err := l.Migrate(t.Context()); steps == 0 || err != nil {
		t.Errorf("%d steps, %v", steps, err)
	}
	must(t, l.Ping(t.Context()))
}

func TestOddDatabaseNamesAreQuoted(t *testing.T) {
	m := stacktest.MariaDB(t)
	odd := name(t) + "-`x"
	l := open(t, m.DSN(odd))
	_, err := l.Migrate(t.Context())
	must(t, err)
	must(t, l.Ping(t.Context()))
	_, err = stacktest.Open(t, m, "").ExecContext(t.Context(), "DROP DATABASE `"+odd[:len(odd)-2]+"``x`")
	must(t, err)
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	for what, dsn := range map[string]string{
		"unreadable":  "root:geheim@tcp(127.0.0.1",
		"no database": "root:geheim@tcp(127.0.0.1:1)/",
		"unknown TLS": "root:geheim@tcp(127.0.0.1:1)/x?tls=geheim",
	} {
		l, err := ledger.Open(dsn)
		if err == nil {
			_ = l.Close()
			t.Errorf("%s: accepted", what)
		}
		noSecret(t, err, "geheim")
	}
}

func TestEveryMethodReportsALostDatabase(t *testing.T) {
	gone, exec := migrated(t)
	exec("DROP TABLE hook_pause, hook_owner, worker_session, installation, silence_evidence")
	nobody := open(t, "root:geheim@tcp(127.0.0.1:1)/x")
	ctx := t.Context()
	for what, l := range map[string]*ledger.Ledger{"no tables": gone, "no server": nobody} {
		for method, call := range map[string]func() error{
			"Ping":       func() error { return l.Ping(ctx) },
			"Paused":     func() error { _, err := l.Paused(ctx, "h"); return err },
			"Pauses":     func() error { _, err := l.Pauses(ctx); return err },
			"SetPause":   func() error { return l.SetPause(ctx, herald.Pause{HookPHID: "h", At: time.Unix(1, 0)}) },
			"ClearPause": func() error { _, err := l.ClearPause(ctx, "h"); return err },
			"Hold": func() error {
				_, err := l.Hold(ctx, []herald.Request{{PHID: "r"}}, herald.Pause{HookPHID: ledger.AllHooks, At: time.Unix(1, 0)})
				return err
			},
			"ReleasedHooks": func() error { _, err := l.ReleasedHooks(ctx); return err },
			"Acquired":      func() error { _, err := l.Acquired(ctx, ledger.Owner{}); return err },
			"Released":      func() error { return l.Released(ctx, ledger.Owner{}) },
			"OwnerOf":       func() error { _, err := l.OwnerOf(ctx, "h"); return err },
			"Owners":        func() error { _, err := l.Owners(ctx); return err },
			"UnfedHooks":    func() error { _, err := l.UnfedHooks(ctx); return err },
			"Installation":  func() error { _, err := l.Installation(ctx); return err },
			"Name":          func() error { _, err := l.Name(ctx, "x"); return err },
			"Joined":        func() error { return l.Joined(ctx, ledger.Session{}) },
			"Left":          func() error { _, err := l.Left(ctx, ledger.Session{}); return err },
			"Sessions":      func() error { _, err := l.Sessions(ctx); return err },
		} {
			err := call()
			if err == nil {
				t.Errorf("%s, %s: no error", what, method)
			}
			noSecret(t, err, "geheim")
		}
	}
	_, err := nobody.Migrate(ctx)
	if err == nil {
		t.Error("migrated nobody")
	}
	noSecret(t, err, "geheim")
}
