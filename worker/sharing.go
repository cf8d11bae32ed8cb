package worker

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"waybill/internal/ledger"
)

// everyHook is how many rounds lie between two looks at every hook's lock, also
// at those that another living process is recorded to own: a record can be
// wrong, a lock cannot.
const everyHook = 10

// sharing is what one round knows about the processes that own hooks.
type sharing struct {
	// living are the instances whose lock sessions live, this one among them.
	living map[string]bool
	// most is how many hooks this process should own: an equal part. Of hooks that
	// are left over, the first processes by name take one more each, so that
	// together they own all and nobody idles beside one that has two more.
	most int
}

// share finds out who takes part. An error of the session ends it; one of the
// ledger is kept for the round's report.
func (r *round) share(ctx context.Context, hooks int) (sharing, error) {
	known, err := bounded(r.o.cfg.Sessions.Sessions)
	if err != nil {
		r.unrecorded = err
		return sharing{}, nil //nolint:nilerr // the round reports it
	}
	s := sharing{living: map[string]bool{r.o.cfg.Instance: true}}
	for _, other := range known {
		if other.Instance == r.o.cfg.Instance {
			continue
		}
		alive, err := r.s.Held(ctx, other.AliveLock)
		if err != nil {
			return sharing{}, err
		}
		if alive {
			s.living[other.Instance] = true
		} else {
			r.bury(other)
		}
	}
	s.most = part(hooks, s.living, r.o.cfg.Instance)
	return s, nil
}

// part is one process's part of the hooks.
func part(hooks int, living map[string]bool, instance string) int {
	before := 0
	for other := range living {
		if other < instance {
			before++
		}
	}
	n := hooks / len(living)
	if before < hooks%len(living) {
		n++
	}
	return n
}

// bury removes the record of a session that the server has dropped. Whoever
// fails to leaves it to the next round.
func (r *round) bury(s ledger.Session) {
	_, err := bounded(func(ctx context.Context) (any, error) { return nil, r.o.cfg.Sessions.Left(ctx, s) })
	if err == nil {
		r.o.cfg.Log.Warn("a process that owned hooks is gone, its hooks are taken over", zap.String("instance", s.Instance))
	}
}

// candidates are the hooks whose locks are worth asking for: not those that a
// living process is recorded to own, but for a look at all of them now and then.
func (r *round) candidates(hooks []string, s sharing) []string {
	r.number++
	if r.number%everyHook == 0 || len(s.living) == 1 {
		return hooks
	}
	owners, err := bounded(r.o.cfg.Records.Owners)
	if err != nil {
		r.unrecorded = err
		return nil
	}
	taken := make(map[string]bool, len(owners))
	for _, owner := range owners {
		taken[owner.HookPHID] = owner.Instance != r.o.cfg.Instance && s.living[owner.Instance]
	}
	return slices.DeleteFunc(slices.Clone(hooks), func(hook string) bool { return taken[hook] })
}

// settle leaves hooks that no longer exist and, of the others, as many as are
// above this process's share; what it was leaving and may keep, it keeps. It
// returns how many more hooks it may take.
func (o *Ownership) settle(wanted map[string]bool, most int) (room int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var ours []string
	for hook, t := range o.tenures {
		if t.leaving = !wanted[hook]; !t.leaving {
			ours = append(ours, hook)
		}
	}
	slices.SortFunc(ours, o.byRest)
	for _, hook := range ours[:max(0, len(ours)-most)] {
		o.tenures[hook].leaving = true
	}
	return max(0, most-len(ours))
}

// byRest puts hooks first that can be handed over soonest: nothing under way,
// then the longest since the last write.
func (o *Ownership) byRest(a, b string) int {
	x, y := o.tenures[a], o.tenures[b]
	if busy := x.slot.idle(); busy != y.slot.idle() {
		if busy {
			return -1
		}
		return 1
	}
	return x.lastUse.Compare(y.lastUse)
}

// leaveAll stops admission everywhere, for good.
func (o *Ownership) leaveAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopping = true
	for _, t := range o.tenures {
		t.leaving = true
	}
}
