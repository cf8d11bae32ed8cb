package devstack_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
)

func startMariaDB(t *testing.T, cfg devstack.MariaDBConfig) *devstack.MariaDB {
	t.Helper()
	stacktest.NeedsServers(t)
	m, err := devstack.StartMariaDB(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Stop(context.Background()) })
	return m
}

func execute(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func number(t *testing.T, db *sql.DB, query string) (n int64) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestMariaDBKeepsDataOverStopAndStart(t *testing.T) {
	var log bytes.Buffer
	cfg := devstack.MariaDBConfig{Dir: t.TempDir(), Log: &log}
	first := startMariaDB(t, cfg)
	db := stacktest.Open(t, first, "")
	execute(t, db, "CREATE DATABASE kept")
	execute(t, db, "CREATE TABLE kept.n (n int)")
	execute(t, db, "INSERT INTO kept.n VALUES (7)")
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}

	second := startMariaDB(t, cfg)
	if n := number(t, stacktest.Open(t, second, "kept"), "SELECT n FROM n"); n != 7 {
		t.Errorf("read %d after a restart, want 7", n)
	}
	if got := strings.Count(log.String(), "creating a "); got != 1 {
		t.Errorf("data directory created %d times, want once; log:\n%s", got, log.String())
	}
}

func TestMariaDBKilledLosesNothingAndComesBackOnItsPort(t *testing.T) {
	m := startMariaDB(t, devstack.MariaDBConfig{Dir: t.TempDir(), Ephemeral: true})
	addr := m.Addr()
	db := stacktest.Open(t, m, "")
	execute(t, db, "CREATE DATABASE kept")
	execute(t, db, "CREATE TABLE kept.n (n int)")
	execute(t, db, "INSERT INTO kept.n VALUES (7)")

	m.Kill()
	if err := m.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m.Addr() != addr {
		t.Errorf("came back on %s, was on %s", m.Addr(), addr)
	}
	if n := number(t, stacktest.Open(t, m, "kept"), "SELECT n FROM n"); n != 7 {
		t.Errorf("read %d after a kill, want 7", n)
	}
	if err := m.Restart(t.Context()); !errors.Is(err, devstack.ErrInUse) {
		t.Errorf("restart of a running server: %v, want ErrInUse", err)
	}
}

func TestMariaDBSettings(t *testing.T) {
	tests := []struct {
		name      string
		ephemeral bool
		flush     int64
	}{{"durable", false, 1}, {"ephemeral", true, 2}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			m := startMariaDB(t, devstack.MariaDBConfig{Dir: dir, Ephemeral: tt.ephemeral})
			db := stacktest.Open(t, m, "")
			if got := number(t, db, "SELECT @@innodb_flush_log_at_trx_commit"); got != tt.flush {
				t.Errorf("flush at commit = %d, want %d", got, tt.flush)
			}
			if got := number(t, db, "SELECT @@tmpdir = '"+filepath.Join(dir, "tmp")+"'"); got != 1 {
				t.Error("temporary tables are not in a directory of the server's own")
			}
			if got := number(t, db, "SELECT @@log_bin"); got != 0 {
				t.Error("the binary log is on")
			}
			var charset, engine, bind string
			row := db.QueryRowContext(t.Context(), "SELECT @@character_set_server, @@default_storage_engine, @@bind_address")
			if err := row.Scan(&charset, &engine, &bind); err != nil {
				t.Fatal(err)
			}
			if charset != "utf8mb4" || engine != "InnoDB" || bind != "127.0.0.1" {
				t.Errorf("charset %s, engine %s, bound to %s", charset, engine, bind)
			}
		})
	}
}

func TestMariaDBRefusesASecondCopyOnItsDirectory(t *testing.T) {
	dir := t.TempDir()
	startMariaDB(t, devstack.MariaDBConfig{Dir: dir})
	_, err := devstack.StartMariaDB(t.Context(), devstack.MariaDBConfig{Dir: dir})
	if !errors.Is(err, devstack.ErrInUse) {
		t.Fatalf("second copy: %v, want ErrInUse", err)
	}
	if !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("the error does not name the process that holds it: %v", err)
	}
}

func TestMariaDBPortInUse(t *testing.T) {
	stacktest.NeedsServers(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := l.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()
	_, err = devstack.StartMariaDB(t.Context(), devstack.MariaDBConfig{Dir: dir, Port: port})
	if !errors.Is(err, devstack.ErrPortInUse) {
		t.Fatalf("taken port: %v, want ErrPortInUse", err)
	}
	// A failed start must not keep the directory.
	startMariaDB(t, devstack.MariaDBConfig{Dir: dir})
}

func TestMariaDBSocketOfADeepDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30))
	m := startMariaDB(t, devstack.MariaDBConfig{Dir: dir})
	var socket string
	if err := stacktest.Open(t, m, "").QueryRowContext(t.Context(), "SELECT @@socket").Scan(&socket); err != nil {
		t.Fatal(err)
	}
	if len(socket) > 107 || strings.HasPrefix(socket, dir) {
		t.Errorf("socket %s", socket)
	}
	if err := m.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(socket)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket's directory is still there: %v", err)
	}
}

func TestMariaDBDirectoryThatIsNoDatabase(t *testing.T) {
	stacktest.NeedsServers(t)
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "mysql"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := devstack.StartMariaDB(t.Context(), devstack.MariaDBConfig{Dir: dir})
	if !errors.Is(err, devstack.ErrExited) {
		t.Fatalf("start on an empty data directory: %v, want ErrExited", err)
	}
	// The log says what is wrong: its last lines must be in the text.
	if !strings.Contains(err.Error(), "[ERROR]") {
		t.Errorf("the error does not show the log: %v", err)
	}
}

func TestMariaDBInterruptedInstallationIsRepeated(t *testing.T) {
	dir := t.TempDir()
	// What a killed installation leaves behind.
	if err := os.MkdirAll(filepath.Join(dir, "mysql.new", "half"), 0o700); err != nil {
		t.Fatal(err)
	}
	startMariaDB(t, devstack.MariaDBConfig{Dir: dir})
}

func TestMariaDBPausedHangsAndGoesOn(t *testing.T) {
	m := startMariaDB(t, devstack.MariaDBConfig{Dir: t.TempDir(), Ephemeral: true})
	db := stacktest.Open(t, m, "")
	number(t, db, "SELECT 1")
	if err := m.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// The signal is on its way when Signal returns: its threads stop one by one.
	hangs := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := db.ExecContext(ctx, "DO 1")
		return errors.Is(err, context.DeadlineExceeded)
	}
	for tries := 100; !hangs(); tries-- {
		if tries == 0 {
			t.Fatal("a paused server goes on answering")
		}
	}
	if err := m.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	number(t, db, "SELECT 1")
}

func TestMariaDBStopsEvenWhenPaused(t *testing.T) {
	m := startMariaDB(t, devstack.MariaDBConfig{Dir: t.TempDir(), Ephemeral: true})
	if err := m.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := m.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMariaDBThatDoesNotStopInTimeIsKilled(t *testing.T) {
	m := startMariaDB(t, devstack.MariaDBConfig{Dir: t.TempDir(), Ephemeral: true})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Stop(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("got %v", err)
	}
	select {
	case <-m.Exited():
	default:
		t.Error("the server still runs")
	}
}

func TestMariaDBExitIsSeen(t *testing.T) {
	m := startMariaDB(t, devstack.MariaDBConfig{Dir: t.TempDir(), Ephemeral: true})
	_, _ = stacktest.Open(t, m, "").ExecContext(t.Context(), "SHUTDOWN")
	select {
	case <-m.Exited():
	case <-time.After(30 * time.Second):
		t.Error("the server's own end was not noticed")
	}
}

func TestMariaDBMissingSaysWhatToInstall(t *testing.T) {
	devstack.SetProgramPaths(t, nil)
	t.Setenv("PATH", t.TempDir())
	_, err := devstack.StartMariaDB(t.Context(), devstack.MariaDBConfig{Dir: t.TempDir()})
	if !errors.Is(err, devstack.ErrMissing) {
		t.Fatalf("without a server: %v, want ErrMissing", err)
	}
	if !strings.Contains(err.Error(), "apt-get install mariadb-server") {
		t.Errorf("the error does not say what to install: %v", err)
	}
}

func TestMariaDBStartEndsWithItsContext(t *testing.T) {
	stacktest.NeedsServers(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := devstack.StartMariaDB(ctx, devstack.MariaDBConfig{Dir: t.TempDir()}); err == nil {
		t.Error("started with a context that had ended")
	}
}

func TestDSNNamesTheDatabase(t *testing.T) {
	m := stacktest.MariaDB(t)
	for _, db := range []string{"", "x_herald"} {
		cfg, err := mysql.ParseDSN(m.DSN(db))
		if err != nil {
			t.Fatal(err)
		}
		if cfg.DBName != db || cfg.Addr != m.Addr() || cfg.User != "root" {
			t.Errorf("DSN(%q) = %s", db, m.DSN(db))
		}
	}
	if m.Root() != m.DSN("") {
		t.Error("Root is not the DSN without a database")
	}
}

func TestMariaDBWorksInAFolderWithASpaceInItsName(t *testing.T) {
	m := startMariaDB(t, devstack.MariaDBConfig{Dir: filepath.Join(t.TempDir(), "a folder", "of mine")})
	if n := number(t, stacktest.Open(t, m, ""), "SELECT 1"); n != 1 {
		t.Errorf("read %d, want 1", n)
	}
}

// What a killed run has left must outlast the next start, and a terminal that
// knows the last run's addresses must still be right.
func TestMariaDBStartsAgainOnItsLastPortAndKeepsTheLastLog(t *testing.T) {
	cfg := devstack.MariaDBConfig{Dir: t.TempDir(), Ephemeral: true}
	first := startMariaDB(t, cfg)
	addr := first.Addr()
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	last, err := os.ReadFile(first.LogFile())
	if err != nil {
		t.Fatal(err)
	}

	second := startMariaDB(t, cfg)
	if second.Addr() != addr {
		t.Errorf("is on %s, was on %s", second.Addr(), addr)
	}
	if kept, err := os.ReadFile(first.LogFile() + ".1"); err != nil || !bytes.Equal(kept, last) {
		t.Errorf("%v, kept %q, want %q", err, kept, last)
	}
	if err := second.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}

	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if third := startMariaDB(t, cfg); third.Addr() == addr {
		t.Errorf("is on %s, which is taken", addr)
	}
}
