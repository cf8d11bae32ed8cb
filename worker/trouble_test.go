package worker

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"waybill/internal/devstack/stacktest"
	"waybill/internal/ledger"
	"waybill/workflows"
)

// unanswered are records whose first write is made and not confirmed.
type unanswered struct {
	*ledger.Ledger
	written atomic.Int64
}

func (u *unanswered) Acquired(ctx context.Context, o ledger.Owner) (bool, error) {
	clean, err := u.Ledger.Acquired(ctx, o)
	if err == nil && u.written.Add(1) == 1 {
		return false, errors.New("the answer to COMMIT was lost")
	}
	return clean, err
}

// The record that tells of a crash is replaced by one of ours whose answer does
// not come: the wait for the claims of the dead process is owed all the same.
func TestALostAnswerDoesNotSpareTheWaitForAFormerOwner(t *testing.T) {
	s := newSite(t, hookA)
	if _, err := s.ledger.Acquired(t.Context(), ledger.Owner{HookPHID: hookA, Instance: "crashed", Connection: 7}); err != nil {
		t.Fatal(err)
	}
	p := s.start("next", func(c *OwnershipConfig) { c.Records = &unanswered{Ledger: s.ledger} })
	eventually(t, "owning the hook", func() bool { p.Wake(); return p.Owned() == 1 })
	if wait, owned := p.Ready(hookA); !owned || wait <= 0 {
		t.Errorf("may be called after %v", wait)
	}
}

// A transaction of somebody's that keeps one hook's record is that hook's
// trouble only.
func TestALockedRecordKeepsNoOtherHookWaiting(t *testing.T) {
	s := newSite(t, hooks(4)...)
	for _, hook := range s.hooks {
		o := ledger.Owner{HookPHID: hook, Instance: "before", Connection: 7}
		_, err := s.ledger.Acquired(t.Context(), o)
		if err = errors.Join(err, s.ledger.Released(t.Context(), o)); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "SELECT 1 FROM hook_owner WHERE hook_phid = ? FOR UPDATE", s.hooks[1]); err != nil {
		t.Fatal(err)
	}
	p := s.start("one", nil)
	p.owns(3)
	if problem := p.Problem(); problem != "" || p.logged("a hook's owner record cannot be written") == 0 {
		t.Errorf("problem %q, lines %v", problem, p.logs.All())
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the fourth hook", func() bool { p.Wake(); return p.Owned() == 4 })
}

// A process that cannot see which hooks there are has no part of them.
func TestNothingIsLeftToAProcessThatSeesNoHooks(t *testing.T) {
	s := newSite(t, hooks(6)...)
	var blind atomic.Bool
	a := s.start("a", func(c *OwnershipConfig) {
		list := c.Hooks
		c.Hooks = func(ctx context.Context) ([]string, error) {
			all, err := list(ctx)
			if blind.Load() {
				return nil, errors.New("no route to Phorge's database")
			}
			return all, err
		}
	})
	b := s.start("b", nil)
	each(t, s, map[*process]int{a: 3, b: 3})
	blind.Store(true)
	s.set(hooks(10)...)
	// What it has it keeps.
	each(t, s, map[*process]int{a: 3, b: 7})
	blind.Store(false)
	each(t, s, map[*process]int{a: 5, b: 5})
}

// A session whose record was lost, or replaced by an earlier try to write it, is
// recorded again: else nobody would count the process, or feed its hooks.
func TestALostSessionRecordIsWrittenAgain(t *testing.T) {
	for name, lose := range map[string]string{
		"lost": "DELETE FROM worker_session", "replaced": "UPDATE worker_session SET alive_lock = 'of-an-earlier-try'",
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, hooks(4)...)
			a := s.start("a", nil)
			a.owns(4)
			if _, err := s.db.ExecContext(t.Context(), lose); err != nil {
				t.Fatal(err)
			}
			b := s.start("b", nil)
			each(t, s, map[*process]int{a: 2, b: 2})
			eventually(t, "both are recorded", func() bool {
				all, err := s.ledger.Sessions(t.Context())
				return err == nil && len(all) == 2
			})
		})
	}
}

// away is a list of sessions that cannot be read now and then.
type away struct {
	*ledger.Ledger
	off *atomic.Bool
}

func (w away) Sessions(ctx context.Context) ([]ledger.Session, error) {
	if w.off.Load() {
		return nil, errors.New("away")
	}
	return w.Ledger.Sessions(ctx)
}

// Processes that have withdrawn for a moment are not said to be dead, and each
// is spoken of once at most.
func TestAMomentWithoutTheLedgerMovesNoHook(t *testing.T) {
	s := newSite(t, hooks(4)...)
	var off atomic.Bool
	all := map[*process]int{}
	for _, name := range []string{"a", "b"} {
		all[s.start(name, func(c *OwnershipConfig) { c.Sessions = away{s.ledger, &off} })] = 2
	}
	each(t, s, all)
	before := map[string]uint64{}
	for _, hook := range s.hooks {
		before[hook] = s.owner(hook).Connection
	}
	off.Store(true)
	for p := range all {
		eventually(t, "the problem", func() bool { p.Wake(); return p.Problem() == problemRecords })
	}
	off.Store(false)
	said := 0
	for p := range all {
		eventually(t, "no problem", func() bool { p.Wake(); return p.Problem() == "" })
		p.look(3)
		said += p.logged("a process is gone, or cannot use")
	}
	if said > len(all) {
		t.Errorf("said %d times that a process is gone", said)
	}
	for _, hook := range s.hooks {
		if o := s.owner(hook); o == nil || o.Connection != before[hook] {
			t.Errorf("%s has moved to %+v", hook, o)
		}
	}
}

// A hook that cannot be named to Temporal must not keep an installation from
// finding its name, or from starting at all.
func TestAnUnspeakableHookDoesNotHideTheInstallationsName(t *testing.T) {
	c, s := stacktest.Client(t), newSite(t)
	queue, err := TaskQueue(t.Context(), c, s.ledger, []string{"PHID-HWBH-\xff\xfe", "PHID-HWBH-a\r\nb"})
	if err != nil || workflows.Installation(queue) == "" || !strings.HasPrefix(queue, "waybill-") {
		t.Errorf("%q, %v", queue, err)
	}
}
