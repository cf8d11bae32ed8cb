package worker

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/internal/ledger"
)

func hooks(n int) []string {
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, fmt.Sprintf("PHID-HWBH-%02d", i))
	}
	return out
}

// each waits until the processes own that many hooks each, and all together.
func each(t *testing.T, s *site, want map[*process]int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d processes with their shares", len(want)), func() bool {
		total, right := 0, true
		for p, n := range want {
			total += p.Owned()
			right = right && p.Owned() == n
		}
		return right && total == len(s.hooks)
	})
}

func TestProcessesShareTheHooks(t *testing.T) {
	s := newSite(t, hooks(10)...)
	a := s.start("a", nil)
	a.owns(10)
	b := s.start("b", nil)
	each(t, s, map[*process]int{a: 5, b: 5})
	c := s.start("c", nil)
	eventually(t, "a part for the third", func() bool {
		return min(a.Owned(), b.Owned(), c.Owned()) >= 3 && a.Owned()+b.Owned()+c.Owned() == 10
	})
	b.stop()
	each(t, s, map[*process]int{a: 5, c: 5})
	if a.logged("a process is gone")+c.logged("a process is gone")+a.logged("did not hand")+c.logged("did not hand") != 0 {
		t.Error("an orderly stop was taken for a crash")
	}
	if sessions, err := s.ledger.Sessions(t.Context()); err != nil || len(sessions) != 2 {
		t.Errorf("sessions %v, %v", sessions, err)
	}
}

// A process that dies is known by its lock: its hooks are taken by the others,
// which wait for its claims to run out.
func TestTheHooksOfADeadProcessAreTakenOver(t *testing.T) {
	s := newSite(t, hooks(6)...)
	dead, err := s.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lock := func(name string) {
		t.Helper()
		if _, err := dead.ExecContext(t.Context(), "SELECT GET_LOCK(?, 0)", name); err != nil {
			t.Fatal(err)
		}
	}
	lock("alive")
	if err := s.ledger.Joined(t.Context(), ledger.Session{Instance: "dead", AliveLock: "alive"}); err != nil {
		t.Fatal(err)
	}
	for i, hook := range s.hooks[:2] {
		lock(herald.LockName(s.namespace, hook))
		if _, err := s.ledger.Acquired(t.Context(), ledger.Owner{HookPHID: hook, Instance: "dead", Connection: uint64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	p := s.start("one", nil)
	p.owns(3)
	// One hook is left to the living process, also by the looks at every lock.
	p.look(2 * everyHook)
	if p.Owned() != 3 {
		t.Errorf("owns %d beside a living process", p.Owned())
	}
	// The end of the session, as far as its locks go.
	if _, err := dead.ExecContext(t.Context(), "DO RELEASE_ALL_LOCKS()"); err != nil {
		t.Fatal(err)
	}
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	p.owns(6)
	p.look(1) // what the round that took them says, it says at its end
	for _, hook := range s.hooks[:2] {
		if wait, owned := p.Ready(hook); wait <= 0 || !owned {
			t.Errorf("%s may be called after %v", hook, wait)
		}
	}
	if p.logged("a process is gone") != 1 || p.logged("did not hand") != 1 {
		t.Errorf("lines %v", p.logs.All())
	}
}

// A hook moves only when nothing is under way in it, and 5 s after the last
// write; idle ones go first.
func TestAHookIsHandedToANewProcessWhenItIsQuiet(t *testing.T) {
	s := newSite(t, hooks(2)...)
	a := s.start("a", nil)
	a.owns(2)
	busy := s.hooks[0]
	pass := a.admit(busy)
	b := s.start("b", nil)
	each(t, s, map[*process]int{a: 1, b: 1})
	if _, owned := a.Ready(busy); !owned {
		t.Error("the busy hook was handed over, not the idle one")
	}
	pass.Done(time.Second)
	s.set(busy) // one hook, two processes: one of them has none
	eventually(t, "the hook that is gone is released", func() bool { return b.Owned() == 0 })
	s.set(hooks(3)...)
	eventually(t, "all are owned", func() bool { return a.Owned()+b.Owned() == 3 && min(a.Owned(), b.Owned()) == 1 })
}

// Whatever is free is taken in the end, nobody has two more than another, and
// then nothing moves any more.
func TestPartsSettle(t *testing.T) {
	for _, tt := range []struct {
		hooks int
		owned []int
	}{
		{20, []int{3, 3, 3, 3, 3, 3, 2, 0}}, {10, []int{10, 0}}, {11, []int{11, 0, 0}}, {1, []int{1, 0}},
		{0, []int{0, 0}}, {3, []int{0, 0, 0, 0, 0}}, {7, []int{0, 7, 0}}, {2000, []int{2000, 0, 0}},
	} {
		owned := slices.Clone(tt.owned)
		free, still := tt.hooks, 0
		for _, n := range owned {
			free -= n
		}
		for range 30 {
			moved := false
			for i := range owned {
				s := sharing{least: tt.hooks / len(owned), most: (tt.hooks + len(owned) - 1) / len(owned)}
				for j, n := range owned {
					s.wanting = s.wanting || (j != i && n < s.least)
				}
				give := max(0, owned[i]-s.keep(owned[i]))
				owned[i], free = owned[i]-give, free+give
				take := min(free, max(0, s.take()-owned[i]))
				owned[i], free = owned[i]+take, free-take
				moved = moved || give+take > 0
			}
			if still++; moved {
				still = 0
			}
		}
		if free != 0 || slices.Max(owned)-slices.Min(owned) > 1 || still == 0 {
			t.Errorf("%d hooks, %v: ends as %v with %d free, at rest for %d rounds", tt.hooks, tt.owned, owned, free, still)
		}
	}
}

// A share that shrinks and grows again before a hook is quiet leaves it where
// it is.
func TestALeavingHookMayStay(t *testing.T) {
	owning(t, func(t *testing.T, o *Ownership) {
		pass := admit(t, o, hookA, false)
		wanted := map[string]bool{hookA: true, hookB: true}
		if room := o.settle(wanted, sharing{}); room != 0 {
			t.Errorf("room for %d", room)
		}
		refused(t, o, hookA, false, activities.Unowned)
		if room := o.settle(wanted, sharing{least: 3, most: 3}); room != 1 {
			t.Errorf("room for %d", room)
		}
		pass.Done(0)
		admit(t, o, hookA, false).Done(0)
		o.leaveAll()
		refused(t, o, hookA, false, activities.Unowned)
	}, hookA, hookB)
}

// cut are sessions and records that can be put out of reach.
type cut struct {
	*ledger.Ledger
	off atomic.Bool
}

func (c *cut) Joined(ctx context.Context, s ledger.Session) error {
	if c.off.Load() {
		return context.DeadlineExceeded
	}
	return c.Ledger.Joined(ctx, s)
}

func (c *cut) Acquired(ctx context.Context, o ledger.Owner) (bool, error) {
	if c.off.Load() {
		return false, context.DeadlineExceeded
	}
	return c.Ledger.Acquired(ctx, o)
}

// Without its database a process takes nothing, and the others do not leave
// hooks to it.
func TestNothingIsLeftToAProcessThatCannotRecord(t *testing.T) {
	s := newSite(t, hooks(2)...)
	records := &cut{Ledger: s.ledger}
	a := s.start("a", func(c *OwnershipConfig) { c.Sessions, c.Records = records, records })
	a.owns(2)
	records.off.Store(true)
	s.set(hooks(6)...)
	eventually(t, "the problem", func() bool { return a.Problem() == "owner records cannot be written" })
	b := s.start("b", nil)
	each(t, s, map[*process]int{a: 2, b: 4})
	records.off.Store(false)
	each(t, s, map[*process]int{a: 3, b: 3})
}

func TestCandidatesLeaveOutWhatTheLivingOwn(t *testing.T) {
	s := newSite(t)
	all := hooks(4)
	for hook, instance := range map[string]string{all[0]: "living", all[1]: "dead", all[2]: "one"} {
		if _, err := s.ledger.Acquired(t.Context(), ledger.Owner{HookPHID: hook, Instance: instance}); err != nil {
			t.Fatal(err)
		}
	}
	r := &round{o: NewOwnership(OwnershipConfig{Instance: "one", Records: s.ledger})}
	both := sharing{living: map[string]bool{"one": true, "living": true}}
	looked := 0
	for r.number = range everyHook {
		got := r.candidates(all, both)
		if len(got) == len(all) {
			looked++
			continue
		}
		if !slices.Equal(got, all[1:]) {
			t.Errorf("candidates %v", got)
		}
	}
	if looked != 1 {
		t.Errorf("%d looks at all hooks in %d rounds", looked, everyHook)
	}
	r.failed = map[string]int{all[3]: r.number + 1}
	if got := r.candidates(all, both); !slices.Equal(got, all[1:3]) {
		t.Errorf("candidates beside a hook that failed: %v", got)
	}
	r.failed = nil
	if got := r.candidates(all, sharing{living: map[string]bool{"one": true}}); len(got) != len(all) {
		t.Errorf("alone: candidates %v", got)
	}
}

// The wait for a former owner's claims is owed by whoever has the hook next,
// however it comes to change hands before it is over.
func TestTheWaitForAFormerOwnerIsNotLost(t *testing.T) {
	dead := func(s *site) {
		for _, hook := range s.hooks {
			if _, err := s.ledger.Acquired(s.t.Context(), ledger.Owner{HookPHID: hook, Instance: "dead"}); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	t.Run("on a new session", func(t *testing.T) {
		s := newSite(t, hookA)
		dead(s)
		p := s.start("one", nil)
		p.owns(1)
		p.clock.skip(lease / 2)
		before := s.owner(hookA).Connection
		if _, err := s.db.ExecContext(t.Context(), fmt.Sprintf("KILL %d", before)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a new session", func() bool {
			o := s.owner(hookA)
			return o != nil && o.Connection != before && p.Owned() == 1
		})
		if wait, _ := p.Ready(hookA); wait <= 0 || wait > lease/2 {
			t.Errorf("wait %v, half of %v is left", wait, lease)
		}
		p.clock.skip(lease / 2)
		p.admit(hookA).Done(0)
	})
	t.Run("when a process joins", func(t *testing.T) {
		s := newSite(t, hooks(2)...)
		dead(s)
		a := s.start("a", nil)
		a.owns(2)
		b := s.start("b", nil)
		eventually(t, "one hook is to move", func() bool {
			_, first := a.Ready(s.hooks[0])
			_, second := a.Ready(s.hooks[1])
			return first != second
		})
		a.look(3)
		b.look(3)
		if a.Owned() != 2 || b.Owned() != 0 {
			t.Errorf("moved before the wait is over: %d and %d", a.Owned(), b.Owned())
		}
		a.clock.skip(lease)
		each(t, s, map[*process]int{a: 1, b: 1})
	})
	t.Run("when its owner ends", func(t *testing.T) {
		s := newSite(t, hookA)
		dead(s)
		a := s.start("a", nil)
		a.owns(1)
		a.stop()
		eventually(t, "the end", a.ended)
		b := s.start("b", nil)
		b.owns(1)
		if wait, _ := b.Ready(hookA); wait <= 0 {
			t.Error("the next owner does not wait")
		}
	})
}

// hanging are records that stop answering.
type hanging struct {
	*ledger.Ledger
	hang  atomic.Bool
	asked atomic.Int64
}

func (h *hanging) Released(ctx context.Context, o ledger.Owner) error {
	h.asked.Add(1)
	if h.hang.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return h.Ledger.Released(ctx, o)
}

// A ledger that hangs rather than refuses holds up the end once, not for each
// hook.
func TestAHangingLedgerHoldsUpTheEndOnce(t *testing.T) {
	s := newSite(t, hooks(20)...)
	records := &hanging{Ledger: s.ledger}
	p := s.start("one", func(c *OwnershipConfig) { c.Records = records })
	p.owns(20)
	records.hang.Store(true)
	p.stop()
	eventually(t, "the end", p.ended)
	if n := records.asked.Load(); n != 1 || p.logged("hand-over not recorded") != 1 {
		t.Errorf("asked %d times, lines %v", n, p.logs.All())
	}
}
