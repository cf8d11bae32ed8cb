package worker

import (
	"context"
	"fmt"
	"slices"
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
	each(t, s, map[*process]int{a: 4, b: 3, c: 3})
	b.stop()
	each(t, s, map[*process]int{a: 5, c: 5})
	if a.logged("is gone")+c.logged("is gone")+a.logged("did not hand")+c.logged("did not hand") != 0 {
		t.Error("an orderly stop was taken for a crash")
	}
	if sessions, err := s.ledger.Sessions(t.Context()); err != nil || len(sessions) != 2 {
		t.Errorf("sessions %v, %v", sessions, err)
	}
}

// A process that dies is known by its lock: its hooks are taken by the others,
// which wait for its claims to run out.
func TestTheHooksOfADeadProcessAreTakenOver(t *testing.T) {
	s := newSite(t, hooks(4)...)
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
	p.owns(2)
	time.Sleep(everyHook * 50 * time.Millisecond) // nothing to watch for: it keeps to its share
	if p.Owned() != 2 {
		t.Errorf("owns %d beside a living process", p.Owned())
	}
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	// Close gives the connection back to the pool; its end is the server's KILL.
	if _, err := s.db.ExecContext(t.Context(), "DO RELEASE_ALL_LOCKS()"); err != nil {
		t.Fatal(err)
	}
	p.owns(4)
	for _, hook := range s.hooks[:2] {
		if wait, owned := p.Ready(hook); wait <= 0 || !owned {
			t.Errorf("%s may be called after %v", hook, wait)
		}
	}
	if p.logged("is gone") != 1 || p.logged("did not hand") != 1 {
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
	each(t, s, map[*process]int{a: 2, b: 1})
}

func TestPartsAddUpAndDifferByOneAtMost(t *testing.T) {
	for processes := 1; processes <= 9; processes++ {
		living := map[string]bool{}
		for i := range processes {
			living[fmt.Sprint("process-", i)] = true
		}
		for n := range 3 * processes {
			total := 0
			for instance := range living {
				p := part(n, living, instance)
				if total += p; p < n/processes || p > n/processes+1 {
					t.Errorf("%d of %d hooks for one of %d", p, n, processes)
				}
			}
			if total != n {
				t.Errorf("%d hooks, %d processes: %d parts", n, processes, total)
			}
		}
	}
}

// A share that shrinks and grows again before a hook is quiet leaves it where
// it is.
func TestALeavingHookMayStay(t *testing.T) {
	owning(t, func(t *testing.T, o *Ownership) {
		pass := admit(t, o, hookA, false)
		wanted := map[string]bool{hookA: true, hookB: true}
		if room := o.settle(wanted, 0); room != 0 {
			t.Errorf("room for %d", room)
		}
		refused(t, o, hookA, false, activities.Unowned)
		if room := o.settle(wanted, 3); room != 1 {
			t.Errorf("room for %d", room)
		}
		pass.Done(0)
		admit(t, o, hookA, false).Done(0)
		o.leaveAll()
		refused(t, o, hookA, false, activities.Unowned)
	}, hookA, hookB)
}

// cut are sessions that cannot be asked.
type cut struct {
	*ledger.Ledger
	err error
}

func (c *cut) Joined(ctx context.Context, s ledger.Session) error {
	if c.err != nil {
		return c.err
	}
	return c.Ledger.Joined(ctx, s)
}

// Without its database a process neither takes nor gives anything.
func TestNobodyJoinsWithoutTheLedger(t *testing.T) {
	s := newSite(t, hookA)
	p := s.start("one", func(c *OwnershipConfig) { c.Sessions = &cut{s.ledger, context.DeadlineExceeded} })
	eventually(t, "the problem", func() bool { return p.Problem() == "owner records cannot be written" })
	if p.Owned() != 0 {
		t.Errorf("owns %d", p.Owned())
	}
	if sessions, err := s.ledger.Sessions(t.Context()); err != nil || len(sessions) != 0 {
		t.Errorf("sessions %v, %v", sessions, err)
	}
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
	for range everyHook {
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
	if got := r.candidates(all, sharing{living: map[string]bool{"one": true}}); len(got) != len(all) {
		t.Errorf("alone: candidates %v", got)
	}
}
