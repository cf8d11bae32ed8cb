// Package stacktest gives tests the servers of devstack: one of each per test
// binary, started when the first test asks and shared by all of them.
//
// A missing program fails the test with a text that says what to install. Only
// `go test -short`, which asks for the tests without servers, skips. Only tests
// may import it.
package stacktest

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"waybill/internal/devstack"
)

// startLimit bounds the start of one server, with two cores busy compiling and
// testing other packages at the same time.
const startLimit = 2 * time.Minute

// dirPrefix names the directories of test binaries under the system's
// temporary directory.
const dirPrefix = "waybill-test-"

// shared is a server that is started once.
type shared[T any] struct {
	once  sync.Once
	value T
	err   error
}

// NeedsServers skips the test under `go test -short`.
func NeedsServers(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs servers: left out by -short")
	}
}

func (s *shared[T]) get(t testing.TB, start func(context.Context, string) (T, error)) T {
	t.Helper()
	NeedsServers(t)
	s.once.Do(func() {
		// Not the test's context: the server outlives the test.
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		var dir string
		if dir, s.err = binaryDir(); s.err == nil {
			s.value, s.err = start(ctx, dir)
		}
	})
	if s.err != nil {
		t.Fatalf("stacktest: %v", s.err)
	}
	return s.value
}

// The package's state is the price of one server per test binary; it is the
// only such state in the repository.
var (
	mariadb  shared[*devstack.MariaDB]
	temporal shared[*devstack.Temporal]
	place    struct {
		sync.Once
		dir string
		err error
	}
)

// Main runs the tests and then stops the servers and removes their files. A
// package uses it as its TestMain; one that does not leaves the files to the
// next run's sweep, and the servers to the kernel, which ends them with their
// parent.
func Main(m *testing.M) {
	code := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if mariadb.value != nil {
		mariadb.value.Kill()
		_ = mariadb.value.Stop(ctx)
	}
	if temporal.value != nil {
		temporal.value.Kill()
		_ = temporal.value.Stop(ctx)
	}
	if place.dir != "" {
		_ = os.RemoveAll(place.dir)
	}
	cancel()
	os.Exit(code)
}

// MariaDB is the binary's database server. Tests must not stop, kill or pause
// it: others use it at the same time (start one with devstack for that).
func MariaDB(t testing.TB) *devstack.MariaDB {
	t.Helper()
	return mariadb.get(t, func(ctx context.Context, dir string) (*devstack.MariaDB, error) {
		return devstack.StartMariaDB(ctx, devstack.MariaDBConfig{Dir: filepath.Join(dir, "mariadb"), Ephemeral: true})
	})
}

// Temporal is the binary's Temporal server, without Web UI. Like MariaDB it is
// shared: use workflow ids and task queues of your own (Name).
func Temporal(t testing.TB) *devstack.Temporal {
	t.Helper()
	return temporal.get(t, func(ctx context.Context, dir string) (*devstack.Temporal, error) {
		bin, err := devstack.FindTemporal(os.Getenv)
		if err != nil {
			return nil, err
		}
		return devstack.StartTemporal(ctx, devstack.TemporalConfig{Bin: bin, Dir: filepath.Join(dir, "temporal")})
	})
}

// Client is a connection to that server, closed after the test.
func Client(t testing.TB) client.Client {
	t.Helper()
	srv := Temporal(t)
	c, err := client.DialContext(t.Context(), client.Options{
		HostPort: srv.Addr(), Namespace: srv.Namespace(),
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatalf("stacktest: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

// Name returns a name no other test uses: prefix, underscore, ten random
// characters. Fit for databases, task queues and workflow ids.
func Name(prefix string) string { return prefix + "_" + devstack.RandomName(10) }

// Open opens a database of the server as root and closes it with the test.
func Open(t testing.TB, m *devstack.MariaDB, db string) *sql.DB {
	t.Helper()
	cfg, err := mysql.ParseDSN(m.DSN(db))
	if err != nil {
		t.Fatalf("stacktest: %v", err)
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatalf("stacktest: %v", err)
	}
	pool := sql.OpenDB(connector)
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// Database creates an empty database with a name of its own, drops it after
// the test and returns its DSN and an open pool.
func Database(t testing.TB, prefix string) (dsn string, db *sql.DB) {
	t.Helper()
	m := MariaDB(t)
	name := Name(prefix)
	exec(t, Open(t, m, ""), "CREATE DATABASE `"+name+"` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
	t.Cleanup(func() { drop(t, m, name) })
	return m.DSN(name), Open(t, m, name)
}

// Phorge creates the databases of a Phorge with this storage namespace ("" for
// a fresh one) and drops them after the test. The DSN of one of them is
// MariaDB(t).DSN(p.Database("herald")).
func Phorge(t testing.TB, namespace string) *devstack.Phorge {
	t.Helper()
	m := MariaDB(t)
	if namespace == "" {
		namespace = Name("t")
	}
	p := &devstack.Phorge{DB: Open(t, m, ""), Namespace: namespace}
	if err := devstack.CreatePhorge(t.Context(), p.DB, namespace); err != nil {
		t.Fatalf("stacktest: %v", err)
	}
	t.Cleanup(func() {
		for _, suffix := range devstack.PhorgeDatabases() {
			drop(t, m, p.Database(suffix))
		}
	})
	return p
}

func exec(t testing.TB, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("stacktest: %v", err)
	}
}

// drop runs in a cleanup, where the test's own context has ended and a pool
// opened before it may be closed already.
func drop(t testing.TB, m *devstack.MariaDB, name string) {
	t.Helper()
	db := Open(t, m, "")
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(context.Background(), "DROP DATABASE IF EXISTS `"+name+"`"); err != nil {
		t.Logf("stacktest: %v", err)
	}
}

// binaryDir is the test binary's directory for its servers. Directories of
// binaries that are gone are removed on the way.
func binaryDir() (string, error) {
	place.Do(func() {
		sweep(os.TempDir())
		place.dir, place.err = os.MkdirTemp("", dirPrefix+fmt.Sprint(os.Getpid())+"-")
	})
	return place.dir, place.err
}

// sweep removes directories whose process, named in the directory's name, no
// longer exists.
func sweep(root string) {
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), dirPrefix)
		var pid int
		if _, err := fmt.Sscanf(rest, "%d-", &pid); !ok || err != nil {
			continue
		}
		if syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = os.RemoveAll(filepath.Join(root, e.Name()))
		}
	}
}
