package worker

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"waybill/activities"
	"waybill/internal/devstack/stacktest"
	"waybill/internal/herald"
	"waybill/internal/ledger"
	"waybill/internal/telemetry"
)

func meter(t *testing.T) (*telemetry.Provider, *Meter) {
	t.Helper()
	p, err := telemetry.NewProvider(zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	h, err := telemetry.NewHerald(p.Meter("waybill/herald"))
	if err != nil {
		t.Fatal(err)
	}
	return p, &Meter{Herald: h}
}

// clock is the system's, shifted.
type clock struct {
	mu    sync.Mutex
	shift time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.shift)
}

func (c *clock) skip(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shift += d
}

// eventually waits until a condition holds, for as long as two busy cores may
// need.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// site is a Phorge's lock server and Waybill's database, real ones, with names
// of their own.
type site struct {
	t         *testing.T
	namespace string
	ledger    *ledger.Ledger
	db        *sql.DB

	mu    sync.Mutex
	hooks []string
}

func newSite(t *testing.T, hooks ...string) *site {
	t.Helper()
	dsn, db := stacktest.Database(t, "waybill")
	l, err := ledger.Open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if _, err := l.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &site{t: t, namespace: stacktest.Name("ns"), ledger: l, db: db, hooks: hooks}
}

func (s *site) list(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hooks), nil
}

func (s *site) set(hooks ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = hooks
}

// process is one that owns hooks of the site.
type process struct {
	*Ownership
	site  *site
	clock *clock
	logs  *observer.ObservedLogs
	stop  context.CancelFunc
	done  chan struct{}
	// rounds are the looks at which hooks there are, one in each round.
	rounds atomic.Int64
}

const (
	lease = 30 * time.Second
	hookA = "PHID-HWBH-a"
	hookB = "PHID-HWBH-b"
)

// start runs an ownership until the test ends; change adapts its configuration.
func (s *site) start(name string, change func(*OwnershipConfig)) *process {
	s.t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	p := &process{site: s, clock: &clock{}, logs: logs, done: make(chan struct{})}
	cfg := OwnershipConfig{
		LockDSN: stacktest.MariaDB(s.t).Root(), SameServer: true, Namespace: s.namespace,
		Instance: name, Queue: "waybill/" + name, Lease: lease, Hold: HoldAfter, MaxInFlight: 2, MaxSlow: 2,
		Hooks: func(ctx context.Context) ([]string, error) { p.rounds.Add(1); return s.list(ctx) }, Records: s.ledger, Sessions: s.ledger, Log: zap.New(core), Clock: p.clock.now,
	}
	if change != nil {
		change(&cfg)
	}
	p.Ownership = NewOwnership(cfg)
	ctx, cancel := context.WithCancel(s.t.Context())
	p.stop = cancel
	go func() { defer close(p.done); p.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		p.clock.skip(time.Hour)
		<-p.done
	})
	return p
}

// look lets the process look n times, from beginning to end, at what it should own.
func (p *process) look(n int64) {
	p.site.t.Helper()
	before := p.rounds.Load()
	eventually(p.site.t, "more rounds", func() bool { p.Wake(); return p.rounds.Load() > before+n })
}

func (p *process) owns(n int) {
	p.site.t.Helper()
	eventually(p.site.t, "owning hooks", func() bool { return p.Owned() == n })
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// admit must let an attempt in.
func (p *process) admit(hook string) *activities.Pass {
	p.site.t.Helper()
	pass, refusal := p.Admit(p.site.t.Context(), ref(hook), false)
	if pass == nil {
		p.site.t.Fatalf("refused: %+v", refusal)
	}
	return pass
}

func (p *process) logged(text string) int {
	return p.logs.Filter(func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, text) }).Len()
}

func ref(hook string) activities.Ref {
	return activities.Ref{ID: 1, PHID: "PHID-HWBR-1", HookPHID: hook}
}

// phorge is a worker of Phorge's: it asks for a hook's lock with zero wait, on
// a connection of its own.
type phorge struct {
	site *site
	conn *sql.Conn
}

func (s *site) phorge() *phorge {
	s.t.Helper()
	conn, err := s.db.Conn(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return &phorge{site: s, conn: conn}
}

func (p *phorge) number(query, lock string) int64 {
	p.site.t.Helper()
	var n sql.NullInt64
	if err := p.conn.QueryRowContext(p.site.t.Context(), query, lock).Scan(&n); err != nil {
		p.site.t.Fatal(err)
	}
	return n.Int64
}

func (p *phorge) lock(hook string) bool {
	return p.number("SELECT GET_LOCK(?, 0)", herald.LockName(p.site.namespace, hook)) == 1
}

func (p *phorge) unlock(hook string) {
	p.number("SELECT RELEASE_LOCK(?)", herald.LockName(p.site.namespace, hook))
}

// holder is the connection that holds a hook's lock, 0 for none.
func (p *phorge) holder(hook string) uint64 {
	return uint64(p.number("SELECT IS_USED_LOCK(?)", herald.LockName(p.site.namespace, hook)))
}

// owner reads a hook's owner record, nil when there is none or it is released.
func (s *site) owner(hook string) *ledger.Owner {
	s.t.Helper()
	o, err := s.ledger.OwnerOf(context.Background(), hook)
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}
