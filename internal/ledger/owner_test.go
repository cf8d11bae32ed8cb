package ledger_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"waybill/internal/ledger"
)

func owner(instance string, connection uint64) ledger.Owner {
	return ledger.Owner{HookPHID: "h", Instance: instance, TaskQueue: "waybill/" + instance, Connection: connection}
}

// A new owner must know whether the one before it may still be sending.
func TestAcquiredSaysWhetherTheHookWasHandedOver(t *testing.T) {
	a, b := owner("a", 1), owner("b", 2)
	again := owner("a", 3) // the same process on a new session
	for _, tt := range []struct {
		name  string
		story func(l *ledger.Ledger) error
		clean bool
	}{
		{"never owned", func(*ledger.Ledger) error { return nil }, true},
		{"handed over", func(l *ledger.Ledger) error {
			_, err := l.Acquired(t.Context(), a)
			return first(err, l.Released(t.Context(), a))
		}, true},
		{"not handed over", func(l *ledger.Ledger) error {
			_, err := l.Acquired(t.Context(), a)
			return err
		}, false},
		{"handed over after a crash before it", func(l *ledger.Ledger) error {
			_, err := l.Acquired(t.Context(), a)
			_, err2 := l.Acquired(t.Context(), again)
			return first(err, err2, l.Released(t.Context(), again))
		}, true},
		{"its own, on an earlier session", func(l *ledger.Ledger) error {
			_, err := l.Acquired(t.Context(), owner("b", 1))
			return err
		}, true},
		{"a late release of the one before", func(l *ledger.Ledger) error {
			_, err := l.Acquired(t.Context(), a)
			_, err2 := l.Acquired(t.Context(), again)
			return first(err, err2, l.Released(t.Context(), a))
		}, false},
		{"a release by another instance", func(l *ledger.Ledger) error {
			_, err := l.Acquired(t.Context(), a)
			return first(err, l.Released(t.Context(), owner("c", 1)))
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, _ := migrated(t)
			must(t, tt.story(l))
			clean, err := l.Acquired(t.Context(), b)
			if err != nil || clean != tt.clean {
				t.Errorf("clean %v, %v, want %v", clean, err, tt.clean)
			}
			if o, err := l.OwnerOf(t.Context(), "h"); err != nil || o == nil || *o != b {
				t.Errorf("owner %v, %v", o, err)
			}
		})
	}
}

// How long an owner waits for one that did not hand the hook over is there to
// be read, and also what it still owes to one before that.
func TestAnOwnersWaitIsRecorded(t *testing.T) {
	l, exec := migrated(t)
	waits := func() time.Duration {
		t.Helper()
		all, err := l.Owners(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("owners %v, %v", all, err)
		}
		return all[0].Waits
	}
	acquire := func(instance string, owed time.Duration) {
		t.Helper()
		o := owner(instance, 1)
		o.Lease, o.Waits = time.Hour, owed
		_, err := l.Acquired(t.Context(), o)
		must(t, err)
	}
	acquire("a", 0)
	if w := waits(); w != 0 {
		t.Errorf("the first owner waits %v", w)
	}
	acquire("b", 0)
	if w := waits(); w < 59*time.Minute || w > time.Hour {
		t.Errorf("after a crash the owner waits %v, want an hour", w)
	}
	acquire("b", 10*time.Minute)
	if w := waits(); w < 9*time.Minute || w > 10*time.Minute {
		t.Errorf("on its next session it waits %v, want what is left", w)
	}
	exec("UPDATE hook_owner SET waits_until = UTC_TIMESTAMP(3) - INTERVAL 1 HOUR")
	if w := waits(); w != 0 {
		t.Errorf("when it is over it waits %v", w)
	}
	must(t, l.Released(t.Context(), owner("b", 1)))
	acquire("c", 0)
	if w := waits(); w != 0 {
		t.Errorf("after a hand-over the owner waits %v", w)
	}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// The release names its own session: one that comes late finds the next
// owner's record and leaves it.
func TestLateReleaseLeavesTheNextOwnersRecord(t *testing.T) {
	l, _ := migrated(t)
	old, next := owner("a", 1), owner("a", 2)
	_, err := l.Acquired(t.Context(), old)
	must(t, err)
	_, err = l.Acquired(t.Context(), next)
	must(t, err)
	must(t, l.Released(t.Context(), old))
	if o, err := l.OwnerOf(t.Context(), "h"); err != nil || o == nil || *o != next {
		t.Errorf("owner %v, %v, want %v", o, err, next)
	}
	must(t, l.Released(t.Context(), next))
	must(t, l.Released(t.Context(), next))
	if o, err := l.OwnerOf(t.Context(), "h"); o != nil || err != nil {
		t.Errorf("owner after the release: %v, %v", o, err)
	}
}

func TestOwnersListsThoseWhoHold(t *testing.T) {
	l, _ := migrated(t)
	var held []string
	for i, hook := range []string{"h1", "h2", "h3", "h4"} {
		// A connection id has 64 bits on MySQL, some of them high.
		o := ledger.Owner{HookPHID: hook, Instance: "i", TaskQueue: "waybill/i", Connection: 1<<63 + uint64(i)}
		_, err := l.Acquired(t.Context(), o)
		must(t, err)
		if i%2 == 0 {
			must(t, l.Released(t.Context(), o))
			continue
		}
		held = append(held, hook)
		if got, err := l.OwnerOf(t.Context(), hook); err != nil || got == nil || *got != o {
			t.Errorf("owner %v, %v, want %v", got, err, o)
		}
	}
	owners, err := l.Owners(t.Context())
	if err != nil || len(owners) != len(held) {
		t.Errorf("owners %v, %v", owners, err)
	}
	for _, s := range []struct {
		session ledger.Session
		want    []string
	}{
		{ledger.Session{Instance: "another", AliveLock: "l1"}, nil},
		{ledger.Session{Instance: "i", AliveLock: "l2", Feeds: true}, nil},
		{ledger.Session{Instance: "i", AliveLock: "l3"}, held},
	} {
		must(t, l.Joined(t.Context(), s.session))
		hooks, err := l.UnfedHooks(t.Context())
		slices.Sort(hooks)
		if err != nil || !slices.Equal(hooks, s.want) {
			t.Errorf("with %+v: hooks to feed %v, %v, want %v", s.session, hooks, err, s.want)
		}
	}
	if o, err := l.OwnerOf(t.Context(), "unknown"); o != nil || err != nil {
		t.Errorf("owner of an unknown hook: %v, %v", o, err)
	}
}

// Only a lock's holder records itself, so two at once are a stale one and the
// next: whatever their order, one record stands, and it is one of theirs.
func TestOwnersThatRecordAtOnce(t *testing.T) {
	l, _ := migrated(t)
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			// A deadlock is an error that the caller tries again over.
			for {
				if _, err := l.Acquired(t.Context(), owner("racer", uint64(i))); err == nil || t.Context().Err() != nil {
					return
				}
			}
		})
	}
	group.Wait()
	owners, err := l.Owners(t.Context())
	if err != nil || len(owners) != 1 || owners[0].Instance != "racer" {
		t.Fatalf("owners %v, %v", owners, err)
	}
	must(t, l.Released(t.Context(), owners[0]))
	if clean, err := l.Acquired(t.Context(), owner("next", 99)); !clean || err != nil {
		t.Errorf("after the winner's release: clean %v, %v", clean, err)
	}
}

// Processes that start together write the first records side by side, in gaps
// of one index that they lock against each other.
func TestFirstRecordsWrittenSideBySide(t *testing.T) {
	l, _ := migrated(t)
	var writers sync.WaitGroup
	for p := range 4 {
		writers.Go(func() {
			for i := range 25 {
				o := ledger.Owner{HookPHID: fmt.Sprintf("PHID-HWBH-%02d%d", i, p), Instance: fmt.Sprint(p), Connection: 1}
				if clean, err := l.Acquired(t.Context(), o); err != nil || !clean {
					t.Errorf("%s: clean %v, %v", o.HookPHID, clean, err)
				}
			}
		})
	}
	writers.Wait()
	if all, err := l.Owners(t.Context()); err != nil || len(all) != 100 {
		t.Errorf("%d records, %v", len(all), err)
	}
}
