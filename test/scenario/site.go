package scenario

import (
	"context"
	"database/sql"
	"log/slog"
	"maps"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
)

// Site is one installation: a Phorge's databases, a database for Waybill and a
// Temporal namespace, all its own. Several processes of one site share its
// work, as they would in production.
type Site struct {
	*devstack.Phorge
	// MariaDB holds the Phorge and Waybill's own database, called Ledger.
	MariaDB *devstack.MariaDB
	Ledger  string
	// Temporal is a client in the site's own Temporal namespace.
	Temporal          client.Client
	TemporalAddress   string
	TemporalNamespace string

	binary string
	own    *sql.DB // no database selected
}

// Servers are what an installation runs on.
type Servers struct {
	MariaDB  *devstack.MariaDB
	Temporal *devstack.Temporal
}

// NewSite makes an installation on the test binary's shared servers.
func NewSite(t testing.TB, b *Binary) *Site {
	t.Helper()
	return NewSiteOn(t, b, Servers{stacktest.MariaDB(t), stacktest.Temporal(t)})
}

// NewSiteOn makes an installation on given servers, for tests that stop them.
func NewSiteOn(t testing.TB, b *Binary, on Servers) *Site {
	t.Helper()
	s := &Site{
		MariaDB: on.MariaDB, Ledger: stacktest.Name("wb"), own: stacktest.Open(t, on.MariaDB, ""),
		TemporalAddress: on.Temporal.Addr(), TemporalNamespace: stacktest.Name("ns"), binary: b.Path(t),
	}
	s.Phorge = &devstack.Phorge{DB: s.own, Namespace: stacktest.Name("t")}
	t.Cleanup(func() { s.drop(t) })
	s.CreatePhorge(t)
	s.Temporal = OpenNamespace(t, s.TemporalAddress, s.TemporalNamespace)
	return s
}

// CreatePhorge makes the Phorge's databases, as NewSite has done once.
func (s *Site) CreatePhorge(t testing.TB) {
	t.Helper()
	if err := devstack.CreatePhorge(t.Context(), s.own, s.Namespace); err != nil {
		t.Fatalf("scenario: %v", err)
	}
}

// DropPhorge removes them, as if the Phorge had not been installed yet.
func (s *Site) DropPhorge(t testing.TB) {
	t.Helper()
	for _, suffix := range devstack.PhorgeDatabases() {
		if _, err := s.own.ExecContext(t.Context(), "DROP DATABASE "+s.Database(suffix)); err != nil {
			t.Fatalf("scenario: %v", err)
		}
	}
}

// drop runs in a cleanup, where the test's context has ended and the pool is
// closed. It only tidies up: the server goes with the test binary.
func (s *Site) drop(t testing.TB) {
	db := stacktest.Open(t, s.MariaDB, "")
	defer func() { _ = db.Close() }()
	names := []string{s.Ledger}
	for _, suffix := range devstack.PhorgeDatabases() {
		names = append(names, s.Database(suffix))
	}
	for _, name := range names {
		_, _ = db.ExecContext(context.Background(), "DROP DATABASE IF EXISTS `"+name+"`")
	}
}

// Env is the environment of the site's processes: where everything is, with
// loopback opened for hooks.
func (s *Site) Env() map[string]string {
	return map[string]string{
		"WAYBILL_HERALD_DSN":         s.MariaDB.DSN(s.Database("herald")),
		"WAYBILL_DSN":                s.MariaDB.DSN(s.Ledger),
		"WAYBILL_TEMPORAL_ADDRESS":   s.TemporalAddress,
		"WAYBILL_TEMPORAL_NAMESPACE": s.TemporalNamespace,
		"WAYBILL_LISTEN":             "127.0.0.1:0",
		"WAYBILL_HERALD_ALLOW":       "127.0.0.0/8",
	}
}

// With is the site's environment with changes; an empty value removes a
// variable.
func (s *Site) With(changes map[string]string) map[string]string {
	env := s.Env()
	maps.Copy(env, changes)
	maps.DeleteFunc(env, func(_, value string) bool { return value == "" })
	return env
}

// Run starts waybill with the site's environment and changes to it.
func (s *Site) Run(t testing.TB, changes map[string]string, args ...string) *Process {
	t.Helper()
	return Start(t, s.binary, s.With(changes), args...)
}

// Serve starts `waybill serve` and waits until it is ready.
func (s *Site) Serve(t testing.TB, changes map[string]string) *Process {
	t.Helper()
	p := s.Run(t, changes, "serve")
	p.AwaitReady(t)
	return p
}

// Command runs waybill to its end and returns what it printed and its code.
func (s *Site) Command(t testing.TB, changes map[string]string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	p := s.Run(t, changes, args...)
	code = p.Wait(t, 2*Patience)
	return p.Out.String(), p.Log.String(), code
}

// retention is the shortest that Temporal takes.
const retention = 24 * time.Hour

// OpenNamespace registers a Temporal namespace and connects to it. Processes
// that share a namespace share task queues, so every site has its own.
func OpenNamespace(t testing.TB, address, namespace string) client.Client {
	t.Helper()
	registerNamespace(t, address, namespace)
	c, err := client.DialContext(t.Context(), client.Options{HostPort: address, Namespace: namespace, Logger: quiet()})
	if err != nil {
		t.Fatalf("scenario: %v", err)
	}
	t.Cleanup(c.Close)
	// The parts of the server hear of a new namespace one after the other; the
	// last one is known by its answer only.
	Until(t, 2*Patience, "a new Temporal namespace can be used", func() bool { return usable(t, c) })
	return c
}

// quiet keeps the SDK's own chatter out of the tests' output.
func quiet() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
