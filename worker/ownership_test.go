package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/internal/ledger"
)

func TestEveryHooksLockIsTakenAndPhorgeNeverGetsIt(t *testing.T) {
	s := newSite(t, hookA, hookB)
	p, php := s.start("one", nil), s.phorge()
	p.owns(2)
	p.look(1) // that all is well a round says at its end
	for _, hook := range s.hooks {
		o := s.owner(hook)
		if o == nil || o.Instance != "one" || o.TaskQueue != "waybill/one" || o.Connection != php.holder(hook) {
			t.Errorf("record %+v beside a lock of %d", o, php.holder(hook))
		}
		for range 20 {
			if php.lock(hook) {
				t.Errorf("Phorge has %s", hook)
			}
		}
	}
	if p.Problem() != "" {
		t.Errorf("problem %q", p.Problem())
	}
	pass := p.admit(hookA)
	if want := (herald.Lock{Name: herald.LockName(s.namespace, hookA), Connection: php.holder(hookA)}); pass.Lock != want {
		t.Errorf("claims check %+v, want %+v", pass.Lock, want)
	}
	if pass.Queue != "waybill/one" || !pass.Owned() {
		t.Errorf("pass %+v", pass)
	}
	pass.Done(0)
}

func TestLocksOnAnotherServerAreNotCheckedByClaims(t *testing.T) {
	s := newSite(t, hookA)
	p := s.start("one", func(c *OwnershipConfig) { c.SameServer = false })
	p.owns(1)
	pass := p.admit(hookA)
	if pass.Lock != (herald.Lock{}) {
		t.Errorf("claims check %+v", pass.Lock)
	}
	pass.Done(0)
}

func TestACallOfPhorgesOwnIsWaitedFor(t *testing.T) {
	s := newSite(t, hookA, hookB)
	php := s.phorge()
	if !php.lock(hookA) {
		t.Fatal("the lock is taken")
	}
	p := s.start("one", nil)
	p.owns(1)
	if _, owned := p.Ready(hookA); owned {
		t.Error("a hook that Phorge is calling is ready")
	}
	pass, refusal := p.Admit(t.Context(), ref(hookA), false)
	if pass != nil || refusal.State != activities.Unowned || refusal.Reason == "" {
		t.Errorf("admitted with %+v", refusal)
	}
	php.unlock(hookA)
	p.owns(2)
	p.admit(hookA).Done(0)
}

// A record that nobody released may belong to a POST in flight.
func TestAnUncleanRecordCostsOneLease(t *testing.T) {
	s := newSite(t, hookA, hookB)
	dead := ledger.Owner{HookPHID: hookA, Instance: "dead", TaskQueue: "waybill/dead", Connection: 4711}
	handed := ledger.Owner{HookPHID: hookB, Instance: "gone", TaskQueue: "waybill/gone", Connection: 4712}
	for _, o := range []ledger.Owner{dead, handed} {
		if _, err := s.ledger.Acquired(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ledger.Released(t.Context(), handed); err != nil {
		t.Fatal(err)
	}
	p := s.start("one", nil)
	p.owns(2)
	p.look(1) // what the round that took them says, it says at its end
	if wait, owned := p.Ready(hookB); wait != 0 || !owned {
		t.Errorf("handed over: %v, %v", wait, owned)
	}
	if wait, owned := p.Ready(hookA); wait <= 0 || wait > lease || !owned {
		t.Errorf("not handed over: %v, %v", wait, owned)
	}
	pass, refusal := p.Admit(t.Context(), ref(hookA), false)
	if pass != nil || refusal.State != activities.Unowned || refusal.Wait <= 0 || refusal.Wait > lease {
		t.Errorf("admitted with %+v", refusal)
	}
	p.clock.skip(lease)
	p.admit(hookA).Done(0)
	if p.logged("did not hand them over") != 1 {
		t.Error("nothing is said about the wait, or too much")
	}
}

func TestALostSessionEndsEveryTenureAtOnce(t *testing.T) {
	s := newSite(t, hookA, hookB)
	p := s.start("one", nil)
	p.owns(2)
	pass := p.admit(hookA)
	before := s.owner(hookA).Connection
	if _, err := s.db.ExecContext(t.Context(), fmt.Sprintf("KILL %d", before)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-pass.Lost:
	case <-time.After(time.Minute):
		t.Fatal("the loss was not noticed")
	}
	if pass.Owned() {
		t.Error("still owned after the loss")
	}
	p.owns(2)
	p.look(1) // what the round that took them says, it says at its end
	// The attempt of the lost tenure is not over until it says so.
	if again, refusal := p.Admit(t.Context(), ref(hookA), false); again != nil || refusal.State != activities.Busy {
		t.Errorf("beside an attempt of the lost tenure: %+v", refusal)
	}
	pass.Done(time.Second)
	if o := s.owner(hookA); o.Connection == before {
		t.Error("the same connection again")
	}
	// Nobody else has had the hook, and what it had in flight itself it knows.
	if wait, owned := p.Ready(hookA); wait != 0 || !owned {
		t.Errorf("after the loss: %v, %v", wait, owned)
	}
	if pass.Owned() {
		t.Error("a pass of the lost tenure counts again")
	}
	p.admit(hookA).Done(0)
	if p.logged("lock session cannot be kept") != 1 || p.logged("can be owned") < 1 {
		t.Errorf("lines %v", p.logs.All())
	}
}

// Phorge checks its row before it asks for the lock, and not again: the lock
// stays for 5 s after the last write.
func TestHandOverHoldsTheLockAfterTheLastWrite(t *testing.T) {
	s := newSite(t, hookA, hookB)
	p, php := s.start("one", nil), s.phorge()
	p.owns(2)
	inFlight := p.admit(hookA)
	p.stop()
	eventually(t, "the unused hook is handed over", func() bool { return s.owner(hookB) == nil && php.lock(hookB) })
	if pass, refusal := p.Admit(t.Context(), ref(hookA), false); pass != nil || refusal.State != activities.Unowned {
		t.Errorf("a stopping process admits: %+v", refusal)
	}
	p.clock.skip(2 * HoldAfter) // however long the attempt takes
	if p.ended() || php.lock(hookA) || !inFlight.Owned() && p.Owned() == 0 {
		t.Error("handed over with an attempt under way")
	}
	inFlight.Done(time.Second)
	p.clock.skip(HoldAfter - time.Second)
	if p.ended() || php.lock(hookA) || s.owner(hookA) == nil {
		t.Error("handed over before its time")
	}
	p.clock.skip(time.Second)
	eventually(t, "the used hook is handed over", func() bool { return s.owner(hookA) == nil && php.lock(hookA) })
	eventually(t, "the end", p.ended)
}

// ordered are records that look at the lock while they are released.
type ordered struct {
	*ledger.Ledger
	look func(ledger.Owner)
}

func (o ordered) Released(ctx context.Context, owner ledger.Owner) error {
	o.look(owner)
	return o.Ledger.Released(ctx, owner)
}

func TestTheRecordIsReleasedBeforeTheLock(t *testing.T) {
	s := newSite(t, hookA)
	php := s.phorge()
	var holder atomic.Uint64
	p := s.start("one", func(c *OwnershipConfig) {
		c.Records = ordered{s.ledger, func(o ledger.Owner) { holder.Store(php.holder(o.HookPHID)) }}
	})
	p.owns(1)
	connection := s.owner(hookA).Connection
	p.stop()
	eventually(t, "the end", p.ended)
	if holder.Load() != connection {
		t.Errorf("released while %d held the lock, not %d", holder.Load(), connection)
	}
}

// A late release never clears the record of the next owner.
func TestALateReleaseLeavesTheNextOwnersRecord(t *testing.T) {
	s := newSite(t, hookA)
	p := s.start("one", nil)
	p.owns(1)
	next := ledger.Owner{HookPHID: hookA, Instance: "next", TaskQueue: "waybill/next", Connection: 4711}
	if _, err := s.ledger.Acquired(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	p.stop()
	eventually(t, "the end", p.ended)
	if o := s.owner(hookA); o == nil || *o != next {
		t.Errorf("record %+v", o)
	}
}

func TestTheNextProcessTakesOverAtOnce(t *testing.T) {
	s := newSite(t, hookA, hookB)
	one := s.start("one", nil)
	one.owns(2)
	two := s.start("two", nil)
	pass, refusal := two.Admit(t.Context(), ref(hookA), false)
	if pass != nil || refusal.State != activities.Elsewhere || refusal.Queue != "waybill/one" {
		t.Errorf("the other process admits with %+v", refusal)
	}
	one.stop()
	two.owns(2)
	two.admit(hookA).Done(0)
	if two.logged("did not hand them over") != 0 {
		t.Error("a clean hand-over was not seen as one")
	}
}

func TestHooksComeAndGo(t *testing.T) {
	s := newSite(t, hookA)
	p, php := s.start("one", nil), s.phorge()
	p.owns(1)
	s.set(hookA, hookB)
	p.Wake()
	p.owns(2)
	p.admit(hookB).Done(0)
	s.set(hookB)
	eventually(t, "the deleted hook is given back", func() bool { return s.owner(hookA) == nil && php.lock(hookA) })
	if _, owned := p.Ready(hookB); !owned {
		t.Error("the other hook went too")
	}
	php.unlock(hookA)
	s.set(hookA, hookB)
	p.owns(2)
}

// failing are records that can be broken.
type failing struct {
	*ledger.Ledger
	broken atomic.Bool
	before func()
}

func (f *failing) Acquired(ctx context.Context, o ledger.Owner) (bool, error) {
	if f.before != nil {
		f.before()
	}
	if f.broken.Load() {
		return false, errors.New("away")
	}
	return f.Ledger.Acquired(ctx, o)
}

// A hook whose owner nobody could find is not owned; one line says so.
func TestRecordsThatCannotBeWritten(t *testing.T) {
	s := newSite(t, hookA, hookB)
	records := &failing{Ledger: s.ledger}
	records.broken.Store(true)
	p, php := s.start("one", func(c *OwnershipConfig) { c.Records = records }), s.phorge()
	eventually(t, "the problem", func() bool { return p.Problem() == "owner records cannot be written" })
	p.look(3)
	if p.Owned() != 0 || p.logged("owner records cannot be written") != 1 {
		t.Errorf("owned %d, %d lines", p.Owned(), p.logged("owner records cannot be written"))
	}
	eventually(t, "the lock is free between tries", func() bool { return php.lock(hookA) })
	php.unlock(hookA)
	records.broken.Store(false)
	p.owns(2)
	eventually(t, "no problem", func() bool { return p.Problem() == "" })
}

// The end of the process while locks are being taken is still an orderly one.
func TestStoppedWhileTakingLocks(t *testing.T) {
	var hooks []string
	for n := range 20 {
		hooks = append(hooks, fmt.Sprintf("PHID-HWBH-%02d", n))
	}
	s := newSite(t, hooks...)
	records := &failing{Ledger: s.ledger}
	var once sync.Once
	taken := make(chan struct{})
	records.before = func() { once.Do(func() { close(taken) }) }
	p := s.start("one", func(c *OwnershipConfig) { c.Records = records })
	<-taken
	p.stop()
	eventually(t, "the end", p.ended)
	owners, err := s.ledger.Owners(t.Context())
	if err != nil || len(owners) != 0 {
		t.Errorf("not handed over: %+v, %v", owners, err)
	}
}

// A hook table that hangs costs no session: what is owned stays owned.
func TestAHookTableThatHangs(t *testing.T) {
	s := newSite(t, hookA)
	var hang atomic.Bool
	var hung atomic.Int64
	p := s.start("one", func(c *OwnershipConfig) {
		c.Hooks = func(ctx context.Context) ([]string, error) {
			if hang.Load() {
				hung.Add(1)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return s.list(ctx)
		}
	})
	p.owns(1)
	pass := p.admit(hookA)
	hang.Store(true)
	eventually(t, "the third hanging look", func() bool { return hung.Load() > 2 })
	select {
	case <-pass.Lost:
		t.Error("the session was lost")
	default:
	}
	if !pass.Owned() {
		t.Error("ownership has run out")
	}
	pass.Done(0)
}

func TestNoServer(t *testing.T) {
	s := newSite(t, hookA)
	p := s.start("one", func(c *OwnershipConfig) { c.LockDSN = "root@tcp(127.0.0.1:1)/" })
	eventually(t, "the problem", func() bool { return p.Problem() == "the lock session cannot be kept" })
	p.stop()
	eventually(t, "the end", p.ended)
	if !slices.Equal([]int{p.Owned(), p.logged("lock session cannot be kept")}, []int{0, 1}) {
		t.Errorf("owned %d, lines %v", p.Owned(), p.logs.All())
	}
}
