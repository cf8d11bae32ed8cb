package heralddb_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

func (f *fixture) session() *heralddb.LockSession {
	f.Helper()
	s, err := heralddb.OpenLockSession(f.Context(), f.dsn(""))
	f.must(err)
	f.Cleanup(func() { _ = s.Close() })
	return s
}

func (f *fixture) acquire(s *heralddb.LockSession, name string) {
	f.Helper()
	got, err := s.Acquire(f.Context(), name)
	f.must(err)
	if !got {
		f.Fatalf("the lock %s was not free", name)
	}
}

// holder is the connection that holds a lock, 0 for nobody, as Phorge sees it.
func (f *fixture) holder(name string) uint64 {
	f.Helper()
	var id sql.NullInt64
	f.must(f.phorge.DB.QueryRowContext(f.Context(), "SELECT IS_USED_LOCK(?)", name).Scan(&id))
	return uint64(id.Int64)
}

// free waits for the server to take a lock back from a session that has ended.
func (f *fixture) free(name string) {
	f.Helper()
	eventually(f.T, "the server frees "+name, func() bool { return f.holder(name) == 0 })
}

func TestPhorgeSeesTheLockAsHeld(t *testing.T) {
	f := newFixture(t)
	name := herald.LockName(f.phorge.Namespace, f.hook.PHID)
	s := f.session()
	if f.holder(name) != 0 {
		t.Fatal("held before anybody asked")
	}
	f.acquire(s, name)
	if got := f.holder(name); got != s.Connection() {
		t.Errorf("held by connection %d, want %d", got, s.Connection())
	}
	// Phorge's worker asks with zero wait.
	var got sql.NullInt64
	f.must(f.phorge.DB.QueryRowContext(t.Context(), "SELECT GET_LOCK(?, 0)", name).Scan(&got))
	if got.Int64 != 0 {
		t.Error("Phorge got a lock that Waybill holds")
	}
}

func TestLockIsRefusedWhileSomebodyElseHasIt(t *testing.T) {
	f := newFixture(t)
	name := herald.LockName(f.phorge.Namespace, f.hook.PHID)
	first, second := f.session(), f.session()
	f.acquire(first, name)
	if got, err := second.Acquire(t.Context(), name); got || err != nil {
		t.Errorf("second session: %v, %v", got, err)
	}
	// Releasing what one does not hold takes it from nobody.
	f.must(second.Release(t.Context(), name))
	if f.holder(name) != first.Connection() {
		t.Error("a stranger's release freed the lock")
	}
	f.must(first.Release(t.Context(), name))
	f.acquire(second, name)
}

func TestOneSessionHoldsManyLocks(t *testing.T) {
	f := newFixture(t)
	s := f.session()
	var names []string
	for i := range 50 {
		names = append(names, herald.LockName(f.phorge.Namespace, fmt.Sprintf("PHID-HWBH-%d", i)))
		f.acquire(s, names[i])
	}
	f.must(s.Release(t.Context(), names[0]))
	if f.holder(names[0]) != 0 {
		t.Error("a released lock is still held")
	}
	for _, n := range names[1:] {
		if f.holder(n) != s.Connection() {
			t.Errorf("%s is not held any more", n)
		}
	}
	f.must(s.Close())
	for _, n := range names {
		f.free(n)
	}
}

func TestKilledSessionIsNoticed(t *testing.T) {
	f := newFixture(t)
	name := herald.LockName(f.phorge.Namespace, f.hook.PHID)
	for what, use := range map[string]func(*heralddb.LockSession) error{
		"ping": func(s *heralddb.LockSession) error { return s.Ping(t.Context()) },
		"acquire": func(s *heralddb.LockSession) error {
			_, err := s.Acquire(t.Context(), name+"-2")
			return err
		},
		"release": func(s *heralddb.LockSession) error { return s.Release(t.Context(), name) },
	} {
		t.Run(what, func(t *testing.T) {
			s := f.session()
			f.acquire(s, name)
			f.must(s.Ping(t.Context()))
			f.exec(fmt.Sprintf("KILL %d", s.Connection()))
			f.free(name)
			// Not once, and not later either: no other connection steps in.
			for range 3 {
				if use(s) == nil {
					t.Error("a killed session answered")
				}
			}
		})
	}
}

// The driver cuts a connection whose context ends during a statement. For the
// lock session that would be every lock at once, at each orderly stop.
func TestCancelledContextDoesNotCostTheLocks(t *testing.T) {
	f := newFixture(t)
	name := herald.LockName(f.phorge.Namespace, f.hook.PHID)
	s := f.session()
	f.acquire(s, name)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := s.Acquire(cancelled, name+"-2"); !got || err != nil {
		t.Errorf("acquire: %v, %v", got, err)
	}
	f.must(s.Ping(cancelled))
	f.must(s.Release(cancelled, name+"-2"))
	if f.holder(name) != s.Connection() || f.holder(name+"-2") != 0 {
		t.Error("locks are not as they were asked for")
	}
}

func TestLockSessionNeedsAServer(t *testing.T) {
	for name, dsn := range map[string]string{
		"unreadable DSN": "root:geheim@tcp(127.0.0.1:1",
		"nobody listens": "root:geheim@tcp(127.0.0.1:1)/x",
	} {
		s, err := heralddb.OpenLockSession(t.Context(), dsn)
		if err == nil {
			_ = s.Close()
			t.Errorf("%s: no error", name)
			continue
		}
		noSecret(t, err, "geheim")
	}
}
