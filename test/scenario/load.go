package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"waybill/internal/devstack"
)

// Planned is a row that was queued, and what may become of it.
type Planned struct {
	PHID, Hook string // Hook is the hook's name
	Behaviour  string
	Retry      string // devstack.RetryForever or RetryNever
	// Collected: the row was deleted under way. MayFail: its hook was disabled for a
	// while, or Phorge failed the row for its hook's settings.
	Collected, MayFail bool
}

// Endless says that the row is tried again and again and never delivered.
func (p Planned) Endless() bool {
	return p.Retry == devstack.RetryForever && !Behaviours()[p.Behaviour]
}

// Load queues rows for hooks of a Witness, like Phorge. Each row's only trigger
// is its own PHID, by which the receiver knows it.
type Load struct {
	site    *Site
	witness *Witness
	object  string

	mu    sync.Mutex
	hooks []loaded
	rows  []Planned
	// disabled are the hooks that have been, by name.
	disabled map[string]bool
}

// loaded is a hook and how it behaves.
type loaded struct {
	devstack.Hook
	behaviour string
}

// NewLoad makes a load without hooks.
func NewLoad(t testing.TB, s *Site, w *Witness) *Load {
	t.Helper()
	object, err := s.CreateTask(t.Context(), devstack.NewPHID("USER"), "a task under load")
	if err != nil {
		t.Fatalf("scenario: %v", err)
	}
	return &Load{site: s, witness: w, object: object, disabled: map[string]bool{}}
}

// AddHooks creates n hooks that behave alike.
func (l *Load) AddHooks(t testing.TB, n int, behaviour string) {
	t.Helper()
	for range n {
		name := fmt.Sprintf("%s-%d", behaviour, len(l.hooks))
		h, err := l.site.CreateHook(t.Context(), devstack.Hook{Name: name, URI: l.witness.URL(behaviour, name)})
		if err != nil {
			t.Fatalf("scenario: %v", err)
		}
		l.mu.Lock()
		l.hooks = append(l.hooks, loaded{h, behaviour})
		l.mu.Unlock()
	}
}

// Hooks are its hooks.
func (l *Load) Hooks() []devstack.Hook {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]devstack.Hook, len(l.hooks))
	for i, h := range l.hooks {
		all[i] = h.Hook
	}
	return all
}

// Queue queues n rows for each hook, in turn.
func (l *Load) Queue(t testing.TB, n int, retry string) {
	t.Helper()
	if err := l.queue(t.Context(), n, retry); err != nil {
		t.Fatalf("scenario: %v", err)
	}
}

func (l *Load) queue(ctx context.Context, n int, retry string) error {
	l.mu.Lock()
	hooks := slices.Clone(l.hooks)
	l.mu.Unlock()
	for range n {
		for _, h := range hooks {
			phid := devstack.NewPHID("HWBR")
			properties := fmt.Sprintf(`{"retry":%q,"transactionPHIDs":[],"triggerPHIDs":[%q],"silent":false,"secure":false}`, retry, phid)
			// Planned first: it may be delivered before Insert returns.
			l.plan(Planned{PHID: phid, Hook: h.Name, Behaviour: h.behaviour, Retry: retry})
			row := devstack.Row{PHID: phid, HookPHID: h.PHID, ObjectPHID: l.object, Properties: properties}
			if err := l.insert(ctx, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// insertWithin bounds a database's absence under load.
const insertWithin = 2 * Patience

// insert queues a row, once: a database that goes away may have taken it.
func (l *Load) insert(ctx context.Context, row devstack.Row) error {
	ctx, cancel := context.WithTimeout(ctx, insertWithin)
	defer cancel()
	for {
		_, err := l.site.Insert(ctx, row)
		var answer *mysql.MySQLError
		if err == nil || errors.As(err, &answer) && answer.Number == duplicateEntry {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lookEvery):
		}
	}
}

// duplicateEntry is MySQL's error ER_DUP_ENTRY.
const duplicateEntry = 1062

// Collect deletes a row that is queued, as Phorge's garbage collector may at any
// time, and says which; empty when there is none.
func (l *Load) Collect(ctx context.Context, chance *rand.Rand) (phid string, err error) {
	err = l.site.DB.QueryRowContext(ctx, "SELECT phid FROM "+l.table()+
		" WHERE status = 'queued' ORDER BY RAND(?) LIMIT 1", chance.Uint32()).Scan(&phid)
	if err != nil {
		return "", err
	}
	l.mark(phid, func(p *Planned) { p.Collected = true })
	return phid, l.site.Collect(ctx, phid)
}

// mark notes what is done to a row.
func (l *Load) mark(phid string, note func(*Planned)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.rows {
		if l.rows[i].PHID == phid {
			note(&l.rows[i])
		}
	}
}

func (l *Load) table() string { return l.site.Database("herald") + ".herald_webhookrequest" }

// claimed is a row under a claim, the latest one; an error when there is none.
func (l *Load) claimed(ctx context.Context) (phid string, err error) {
	err = l.site.DB.QueryRowContext(ctx, "SELECT phid FROM "+l.table()+" WHERE status = 'queued' AND lastRequestResult = 'none'"+
		" AND dateModified > dateCreated ORDER BY dateModified DESC, id DESC LIMIT 1").Scan(&phid)
	return phid, err
}

// Fail fails the row that was claimed last for its hook's settings, as Phorge's
// worker does before it asks for the lock and without a look at it.
func (l *Load) Fail(ctx context.Context) error {
	phid, err := l.claimed(ctx)
	if err != nil {
		return err
	}
	l.mark(phid, func(p *Planned) { p.MayFail = true })
	_, err = l.site.DB.ExecContext(ctx, "UPDATE "+l.table()+
		" SET status = 'failed', lastRequestResult = 'none', lastRequestEpoch = 0, dateModified = UNIX_TIMESTAMP() WHERE phid = ? AND status = 'queued'", phid)
	return err
}

// Touch saves the row that was claimed last without changing anything in it but
// its version, as somebody else may do.
func (l *Load) Touch(ctx context.Context) (phid string, err error) {
	if phid, err = l.claimed(ctx); err == nil {
		_, err = l.site.DB.ExecContext(ctx, "UPDATE "+l.table()+" SET dateModified = dateModified + 1 WHERE phid = ? AND status = 'queued'", phid)
	}
	return phid, err
}

// Disable switches a hook off in Phorge. Its rows may from now on end that way.
func (l *Load) Disable(ctx context.Context, hook devstack.Hook) error {
	l.mu.Lock()
	l.disabled[hook.Name] = true
	l.mu.Unlock()
	return l.site.SetHookStatus(ctx, hook.PHID, "disabled")
}

// Enable switches it on again.
func (l *Load) Enable(ctx context.Context, hook devstack.Hook) error {
	return l.site.SetHookStatus(ctx, hook.PHID, "enabled")
}

func (l *Load) plan(p Planned) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows = append(l.rows, p)
}

// Stream queues one row for each hook every so often until the answer is
// called, which waits for the end.
func (l *Load) Stream(t testing.TB, every time.Duration, retry string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := l.queue(context.WithoutCancel(ctx), 1, retry); err != nil {
				t.Errorf("scenario: stream: %v", err)
				return
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// Rows are the rows queued so far.
func (l *Load) Rows() []Planned {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.rows)
	for i := range all {
		all[i].MayFail = all[i].MayFail || l.disabled[all[i].Hook]
	}
	return all
}

// Outstanding counts the rows that are not at their end yet. Those that never
// get to one do not count.
func (l *Load) Outstanding(t testing.TB) (n int) {
	t.Helper()
	found := l.Found(t)
	for _, p := range l.Rows() {
		if !p.Endless() && found[p.PHID].Status == queued {
			n++
		}
	}
	return n
}

// AwaitDone waits until none is outstanding and no call is under way.
func (l *Load) AwaitDone(t testing.TB, within time.Duration) {
	t.Helper()
	n, calls := 0, 0
	Until(t, within, func() string {
		return fmt.Sprintf("every row is at its end; %d are not, %d calls are under way", n, calls)
	}, func() bool { n, calls = l.Outstanding(t), l.witness.UnderWay(); return n+calls == 0 })
}

// Found reads all rows of the table.
func (l *Load) Found(t testing.TB) map[string]devstack.Row {
	t.Helper()
	found, err := l.find(t.Context())
	if err != nil {
		t.Fatalf("scenario: %v", err)
	}
	return found
}

func (l *Load) find(ctx context.Context) (map[string]devstack.Row, error) {
	rows, err := l.site.DB.QueryContext(ctx, "SELECT phid, status, lastRequestResult, properties FROM "+l.table())
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	all := map[string]devstack.Row{}
	for rows.Next() {
		var r devstack.Row
		if err := rows.Scan(&r.PHID, &r.Status, &r.LastResult, &r.Properties); err != nil {
			return nil, err
		}
		all[r.PHID] = r
	}
	return all, rows.Err()
}
