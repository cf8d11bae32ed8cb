package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"waybill/activities"
	"waybill/internal/ledger"
)

// nobody are records without any owner.
type nobody struct{ err error }

func (nobody) Acquired(context.Context, ledger.Owner) (bool, error)     { return true, nil }
func (nobody) Released(context.Context, ledger.Owner) error             { return nil }
func (n nobody) Owners(context.Context) ([]ledger.Owner, error)         { return nil, n.err }
func (n nobody) OwnerOf(context.Context, string) (*ledger.Owner, error) { return nil, n.err }

// owning runs a test in a bubble with an ownership that owns hooks, without a
// server behind it.
func owning(t *testing.T, test func(*testing.T, *Ownership), hooks ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := NewOwnership(OwnershipConfig{
			Instance: "one", Queue: "waybill/one", Lease: lease, Hold: HoldAfter, MaxInFlight: 2, MaxSlow: 3,
			Records: nobody{}, Log: zap.NewNop(), Clock: time.Now,
		})
		for _, h := range hooks {
			o.begin(h, "lock", 1, true)
		}
		o.valid = time.Now().Add(time.Hour)
		test(t, o)
	})
}

func admit(t *testing.T, o *Ownership, hook string, again bool) *activities.Pass {
	t.Helper()
	pass, refusal := o.Admit(t.Context(), ref(hook), again)
	if pass == nil {
		t.Fatalf("refused: %+v", refusal)
	}
	return pass
}

func refused(t *testing.T, o *Ownership, hook string, again bool, want activities.ClaimState) {
	t.Helper()
	pass, refusal := o.Admit(t.Context(), ref(hook), again)
	if pass != nil || refusal.State != want || refusal.Reason == "" {
		t.Errorf("got %v, %+v, want %q with a reason", pass, refusal, want)
	}
}

func TestOneAttemptAtATime(t *testing.T) {
	owning(t, func(t *testing.T, o *Ownership) {
		pass := admit(t, o, hookA, false)
		begun := time.Now()
		refused(t, o, hookA, false, activities.Busy)
		refused(t, o, hookA, true, activities.Busy)
		if waited := time.Since(begun); waited != 2*patience {
			t.Errorf("waited %v", waited)
		}
		admit(t, o, hookB, false).Done(0) // another hook is not concerned
		pass.Done(0)
		pass.Done(0) // once is enough
		second := admit(t, o, hookA, true)
		refused(t, o, hookA, false, activities.Busy)
		second.Done(0)
	}, hookA, hookB)
}

// Receivers are unknown, fast or slow, by their last answer.
func TestFastIsWhoAnsweredFast(t *testing.T) {
	owning(t, func(t *testing.T, o *Ownership) {
		for _, c := range []struct {
			took time.Duration
			fast bool // afterwards
		}{{0, false}, {fastWithin - 1, true}, {0, true}, {fastWithin, false}, {time.Millisecond, true}} {
			admit(t, o, hookA, false).Done(c.took)
			next := admit(t, o, hookA, false)
			if next.Fast != c.fast {
				t.Errorf("after %v: fast %v", c.took, next.Fast)
			}
			next.Done(0)
		}
	}, hookA)
}

// reserve takes room, nil when there is none for a while.
func reserve(t *testing.T, o *Ownership, hook string) func() {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	release, err := o.Reserve(ctx, hook)
	if err != nil {
		return nil
	}
	return release
}

// Hanging receivers fill their own room and no other's.
func TestSlowReceiversLeaveTheFastOnesRoom(t *testing.T) {
	owning(t, func(t *testing.T, o *Ownership) {
		admit(t, o, hookB, false).Done(time.Millisecond)
		var slow []func()
		for range 3 {
			slow = append(slow, reserve(t, o, hookA))
		}
		if reserve(t, o, hookA) != nil || reserve(t, o, "unknown") != nil {
			t.Error("more slow ones than MaxSlow")
		}
		refused(t, o, hookA, true, activities.Busy) // retries need room too
		first, second := reserve(t, o, hookB), reserve(t, o, hookB)
		if first == nil || second == nil {
			t.Fatal("slow receivers took the fast ones' room")
		}
		if reserve(t, o, hookB) != nil {
			t.Error("more fast ones than MaxInFlight")
		}
		slow[0]()
		slow[0]() // once is enough
		if reserve(t, o, hookA) == nil || reserve(t, o, hookA) != nil {
			t.Error("giving back twice made room for two")
		}
	}, hookA, hookB)
}

// However many receivers are known to hang, a new one finds room.
func TestReceiversKnownAsSlowLeaveRoomForUnknownOnes(t *testing.T) {
	owning(t, func(t *testing.T, o *Ownership) {
		admit(t, o, hookA, false).Done(time.Minute)
		for range 2 {
			if reserve(t, o, hookA) == nil {
				t.Fatal("no room for a slow one")
			}
		}
		if reserve(t, o, hookA) != nil {
			t.Error("slow ones took all of MaxSlow")
		}
		first := reserve(t, o, hookB)
		if first == nil || reserve(t, o, hookB) != nil {
			t.Error("not one place for an unknown one")
		}
		// Waiting in vain takes nothing along.
		first()
		if reserve(t, o, hookB) == nil {
			t.Error("room was lost")
		}
	}, hookA, hookB)
}

// Retries that wake together wait for their hook without room of their own, and
// those of all hooks leave half of the room to first tries.
func TestRetriesLeaveRoomForFirstTries(t *testing.T) {
	owning(t, func(t *testing.T, o *Ownership) {
		for _, hook := range []string{hookA, hookB, "PHID-HWBH-c"} {
			admit(t, o, hook, false).Done(time.Millisecond)
		}
		holder, retried, begun := admit(t, o, hookA, false), make(chan *activities.Pass, 10), time.Now()
		again := func(hook string) {
			pass, _ := o.Admit(t.Context(), ref(hook), true)
			retried <- pass
		}
		for range 5 {
			go again(hookA)
			go again(hookB)
		}
		synctest.Wait()
		refused(t, o, hookA, true, activities.Busy)
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("a retry waited %v behind a full line", waited)
		}
		first := reserve(t, o, "PHID-HWBH-c")
		if waited := time.Since(begun); first == nil || waited > 0 {
			t.Fatalf("a first try waited %v for room", waited)
		}
		first()
		holder.Done(time.Millisecond)
		for range 10 {
			if pass := <-retried; pass != nil {
				pass.Done(time.Millisecond)
			}
		}
		for range 2 {
			if reserve(t, o, hookA) == nil {
				t.Error("room was lost")
			}
		}
	}, hookA, hookB, "PHID-HWBH-c")
}

// A retry gives its room back with its slot, or when it does not get one.
func TestRetriesGiveTheirRoomBack(t *testing.T) {
	owning(t, func(t *testing.T, o *Ownership) {
		for range 5 {
			admit(t, o, hookA, true).Done(0)
		}
		holder := admit(t, o, hookA, false)
		for range 5 {
			refused(t, o, hookA, true, activities.Busy)
		}
		holder.Done(0)
		for range 3 {
			if reserve(t, o, hookA) == nil {
				t.Fatal("room was lost")
			}
		}
	}, hookA)
}

// An attempt that waited for its slot while the hook was given up stays out:
// once a hook counts as quiet, nobody may enter it.
func TestAHookBeingLeftLetsNobodyIn(t *testing.T) {
	owning(t, func(t *testing.T, o *Ownership) {
		holder := admit(t, o, hookA, false)
		outcome := make(chan activities.ClaimResult)
		go func() {
			pass, refusal := o.Admit(t.Context(), ref(hookA), false)
			if pass != nil {
				refusal.State = activities.Won
			}
			outcome <- refusal
		}()
		synctest.Wait()
		o.settle(map[string]bool{}, sharing{most: 1})
		if len(o.quiet()) != 0 {
			t.Error("quiet with an attempt in it")
		}
		holder.Done(0)
		if r := <-outcome; r.State != activities.Unowned {
			t.Errorf("the waiting attempt: %+v", r)
		}
		refused(t, o, hookA, false, activities.Unowned)
		time.Sleep(HoldAfter - time.Nanosecond)
		if len(o.quiet()) != 0 {
			t.Error("quiet before its time")
		}
		time.Sleep(time.Nanosecond)
		if len(o.quiet()) != 1 {
			t.Error("not quiet in the end")
		}
	}, hookA)
}

// Ownership runs out by the local clock, whatever the server thinks.
func TestOwnershipRunsOutByItself(t *testing.T) {
	owning(t, func(t *testing.T, o *Ownership) {
		o.valid = time.Now().Add(validFor)
		pass := admit(t, o, hookA, false)
		time.Sleep(validFor - time.Nanosecond)
		if !pass.Owned() {
			t.Error("ran out early")
		}
		time.Sleep(time.Nanosecond)
		if pass.Owned() {
			t.Error("owned beyond the last answer's time")
		}
		pass.Done(0)
	}, hookA)
}

func TestLossEndsPassesAndNewTenuresAreOthers(t *testing.T) {
	owning(t, func(t *testing.T, o *Ownership) {
		pass := admit(t, o, hookA, false)
		o.loseAll()
		<-pass.Lost
		refused(t, o, hookA, false, activities.Unowned)
		o.begin(hookA, "lock", 2, true)
		o.valid = time.Now().Add(time.Hour)
		if pass.Owned() {
			t.Error("a pass of the old tenure counts in the new one")
		}
		// The attempt may still be writing: the slot is the hook's, not the tenure's.
		refused(t, o, hookA, false, activities.Busy)
		pass.Done(time.Second)
		next := admit(t, o, hookA, false)
		pass.Done(time.Second) // once is enough, the slot is another's now
		refused(t, o, hookA, false, activities.Busy)
		next.Done(0)
		if o.leaveAll(); len(o.quiet()) != 0 {
			t.Error("not held after the last write of the lost tenure")
		}
	}, hookA)
}

func TestNobodyKnowsTheOwner(t *testing.T) {
	owning(t, func(t *testing.T, o *Ownership) {
		refused(t, o, hookA, false, activities.Unowned)
		o.cfg.Records = nobody{errors.New("away")}
		refused(t, o, hookA, false, activities.Unowned)
	})
}

func TestEndsAreToldToWhoListens(t *testing.T) {
	owning(t, func(t *testing.T, o *Ownership) {
		o.Ended(activities.Ended{State: activities.Won})
		heard := 0
		o.OnEnded(func(activities.Ended) { heard++ })
		o.Ended(activities.Ended{State: activities.Won})
		if heard != 1 {
			t.Errorf("heard %d", heard)
		}
		o.Wake()
		o.Wake() // nobody listens: must not block
	})
}
