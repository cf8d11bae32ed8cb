package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"waybill/activities"
	"waybill/internal/planted"
)

// Shares of a room. Those known as slow leave one place of unknownShare free: a
// hook that is new must not wait behind any number of hanging ones. Retries take
// one of retryShare: however many receivers fail, first tries find room.
const (
	unknownShare = 4
	retryShare   = 2
)

// retriesInLine is how many retries of a hook may stand in line. Each waits in a
// workflow task, of which there are only so many for all hooks; the others come
// again later.
const retriesInLine = 4

var errLine = errors.New("enough retries of the hook stand in line")

// rooms bound the attempts under way. The slow and unknown kind has a room of
// its own, so that hanging receivers leave room for the others.
type rooms struct {
	fast, slow, knownSlow    *semaphore.Weighted
	fastRetries, slowRetries *semaphore.Weighted
}

func newRooms(fast, slow int) rooms {
	of := func(places int) *semaphore.Weighted { return semaphore.NewWeighted(int64(max(1, places))) }
	return rooms{
		fast: of(fast), fastRetries: of(fast / retryShare),
		slow: of(slow), slowRetries: of(slow / retryShare), knownSlow: of(slow - max(1, slow/unknownShare)),
	}
}

// Reserve waits for room among the attempts of the hook's kind.
func (o *Ownership) Reserve(ctx context.Context, hookPHID string) (release func(), err error) {
	return o.reserve(ctx, hookPHID, firstTry)
}

func (o *Ownership) reserve(ctx context.Context, hookPHID string, kind turn) (release func(), err error) {
	fast, known := o.speed(hookPHID)
	retries, wanted := o.rooms.slowRetries, []*semaphore.Weighted{o.rooms.slow}
	switch {
	case fast:
		retries, wanted = o.rooms.fastRetries, []*semaphore.Weighted{o.rooms.fast}
	case known:
		wanted = []*semaphore.Weighted{o.rooms.knownSlow, o.rooms.slow}
	}
	if kind == retry {
		wanted = append([]*semaphore.Weighted{retries}, wanted...)
	}
	var taken []*semaphore.Weighted
	leave := func() {
		for _, room := range taken {
			room.Release(1)
		}
	}
	for _, room := range wanted {
		if err := room.Acquire(ctx, 1); err != nil {
			leave()
			return nil, err
		}
		taken = append(taken, room)
	}
	return sync.OnceFunc(leave), nil
}

// reserveRetry waits for a retry's room, one retry of the hook at a time: those
// of one hook may wake by the hundred, and each would hold a place while it waits
// for the hook's slot.
func (o *Ownership) reserveRetry(ctx context.Context, hookPHID string, s *slot) (release func(), err error) {
	defer s.line.Add(-1)
	if s.line.Add(1) > retriesInLine {
		return nil, errLine
	}
	select {
	case s.retrying <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	leave, err := o.reserve(ctx, hookPHID, retry)
	if err != nil {
		<-s.retrying
		return nil, err
	}
	return sync.OnceFunc(func() { leave(); <-s.retrying }), nil
}

// speed says how the hook's receiver answered last.
func (o *Ownership) speed(hookPHID string) (fast, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fast, known = o.speeds[hookPHID]
	return fast, known
}

// Admit lets an attempt into its hook, one at a time. First attempts were given
// room by their feed; retries come by themselves and find it here.
func (o *Ownership) Admit(ctx context.Context, ref activities.Ref, again bool) (*activities.Pass, activities.ClaimResult) {
	t, refusal := o.tenure(ctx, ref.HookPHID)
	if t == nil {
		return nil, refusal
	}
	kind, release := firstTry, func() {}
	if again {
		kind = retry
		within, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		var err error
		if release, err = o.reserveRetry(within, ref.HookPHID, t.slot); err != nil {
			return nil, busy("Another retry to this hook is under way, or all room for retries to receivers of this kind is taken.")
		}
	}
	if again && planted.Is(planted.RetryOutsideSlot) {
		return o.pass(ref.HookPHID, t, release), activities.ClaimResult{}
	}
	if !t.slot.enter(ctx, kind, patience) {
		release()
		return nil, busy("Another attempt to this hook is under way.")
	}
	if !o.open(ref.HookPHID, t) {
		t.slot.leave()
		release()
		return nil, unowned(0, "The hook was given up while the attempt waited.")
	}
	return o.pass(ref.HookPHID, t, release), activities.ClaimResult{}
}

// open asks again whether the hook takes attempts, now that its slot is held:
// only an attempt in the slot keeps the hook from being released.
func (o *Ownership) open(hookPHID string, t *tenure) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tenures[hookPHID] == t && !t.leaving
}

func busy(reason string) activities.ClaimResult {
	return activities.ClaimResult{State: activities.Busy, Reason: reason}
}

func unowned(wait time.Duration, reason string) activities.ClaimResult {
	return activities.ClaimResult{State: activities.Unowned, Wait: wait, Reason: reason}
}

// tenure finds this process's tenure of a hook, or who has it.
func (o *Ownership) tenure(ctx context.Context, hookPHID string) (*tenure, activities.ClaimResult) {
	o.mu.Lock()
	t, wait, owned := o.ready(hookPHID)
	o.mu.Unlock()
	switch {
	case owned && wait > 0:
		return nil, unowned(wait, "The process that called the hook before crashed or was cut off, and may still be calling.")
	case owned:
		return t, activities.ClaimResult{}
	}
	other, err := o.cfg.Records.OwnerOf(ctx, hookPHID)
	if err == nil && other != nil && other.Instance != o.cfg.Instance {
		return nil, activities.ClaimResult{State: activities.Elsewhere, Queue: other.TaskQueue}
	}
	return nil, unowned(0, "No process owns the hook at the moment.")
}

// pass is admission to the hook; Done may be called more than once.
func (o *Ownership) pass(hookPHID string, t *tenure, release func()) *activities.Pass {
	var once sync.Once
	fast, _ := o.speed(hookPHID)
	return &activities.Pass{
		Queue: o.cfg.Queue, Fast: fast, Lock: t.lock, Since: t.since, Lost: t.lost,
		Owned: func() bool { return o.stillOwned(hookPHID, t) },
		Done: func(took time.Duration) {
			once.Do(func() {
				o.used(hookPHID, took)
				t.slot.leave()
				release()
			})
		},
	}
}

// stillOwned asks once more, by the monotonic clock.
func (o *Ownership) stillOwned(hookPHID string, t *tenure) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tenures[hookPHID] == t && o.cfg.Clock().Before(o.valid)
}

// used remembers when a hook was last written about and how fast it answered.
// The write may be the last one of a lost tenure: the lock is held for it too.
func (o *Ownership) used(hookPHID string, took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.tenures[hookPHID]; t != nil {
		t.lastUse, t.used = o.cfg.Clock(), true
	}
	if took > 0 {
		o.speeds[hookPHID] = took < fastWithin
	}
}
