package worker

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"waybill/internal/ledger"
)

// everyHook is how many rounds lie between two looks at every hook's lock, also
// at those that another living process is recorded to own: a record can be
// wrong, a lock cannot.
const everyHook = 10

// restRounds is how many rounds a hook whose owner record could not be written is
// left alone, and how long a process does not take part where it cannot write any:
// joined and gone again each second, it would have the others give and take back.
const restRounds = 10

// problemRecords is what readiness says of Waybill's database.
const problemRecords = "owner records cannot be written"

var errUnrecorded = errors.New("this process's session is not recorded any more")

// sharing is what one round knows about the processes that own hooks.
type sharing struct {
	// living are the instances whose lock sessions live, this one among them.
	living map[string]bool
	// least is an equal part of the hooks, rounded down, most the same rounded up.
	least, most int
	// wanting: another living process has less than the least.
	wanting bool
}

// keep is how many of its hooks a process may keep. It gives more than it must
// only to a process that has too few: a hook that moves is not called meanwhile.
func (s sharing) keep(owned int) int {
	if s.wanting && owned <= s.most {
		return s.least
	}
	return s.most
}

// take is how many hooks a process may own by taking free ones. What is left
// over when all have their part is anybody's.
func (s sharing) take() int {
	if s.wanting {
		return s.least
	}
	return s.most
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
	fewest, recorded := hooks, false
	for _, other := range known {
		if other.Instance == r.o.cfg.Instance {
			recorded = recorded || other.AliveLock == r.me.AliveLock
			continue
		}
		alive, err := r.s.Held(ctx, other.AliveLock)
		if err != nil {
			return sharing{}, err
		}
		if !alive {
			r.bury(other)
			if err := r.keepAlive(); err != nil {
				return sharing{}, err
			}
			continue
		}
		s.living[other.Instance] = true
		fewest = min(fewest, other.Owned)
	}
	if !recorded {
		// Nobody would count this process, or feed its hooks: it joins again.
		r.unrecorded = errUnrecorded
		return sharing{}, nil
	}
	s.least = hooks / len(s.living)
	s.most = (hooks + len(s.living) - 1) / len(s.living)
	s.wanting = fewest < s.least
	return s, nil
}

// bury removes the record of a session whose lock is free: the server has
// dropped it, or its process has withdrawn and keeps what it owns. Whoever fails
// to leaves it to the next round.
func (r *round) bury(s ledger.Session) {
	buried, err := bounded(func(ctx context.Context) (bool, error) { return r.o.cfg.Sessions.Left(ctx, s) })
	if err == nil && buried {
		r.o.cfg.Log.Warn("a process is gone, or cannot use Waybill's database: the others share the hooks that it does not hold",
			zap.String("instance", s.Instance), zap.Int("recorded_hooks", s.Owned))
	}
}

// candidates are the hooks whose locks are worth asking for: not those that a
// living process is recorded to own, but for a look at all of them now and then.
func (r *round) candidates(hooks []string, s sharing) []string {
	hooks = slices.DeleteFunc(slices.Clone(hooks), func(hook string) bool { return r.failed[hook] != 0 })
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
	return slices.DeleteFunc(hooks, func(hook string) bool { return taken[hook] })
}

// settle leaves hooks that no longer exist and, of the others, as many as are
// above this process's part; what it was leaving and may keep, it keeps. It
// returns how many more hooks it may take.
func (o *Ownership) settle(wanted map[string]bool, s sharing) (room int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var ours []string
	for hook, t := range o.tenures {
		if t.leaving = !wanted[hook]; !t.leaving {
			ours = append(ours, hook)
		}
	}
	if above := len(ours) - s.keep(len(ours)); above > 0 {
		slices.SortFunc(ours, o.byRest)
		for _, hook := range ours[:above] {
			o.tenures[hook].leaving = true
		}
	}
	return max(0, s.take()-len(ours))
}

// byRest puts hooks first that can be handed over soonest: no wait for a former
// owner, nothing under way, then the longest since the last write.
func (o *Ownership) byRest(a, b string) int {
	x, y := o.tenures[a], o.tenures[b]
	return cmp.Or(
		cmp.Compare(rank(o.waiting(x)), rank(o.waiting(y))),
		cmp.Compare(rank(!x.slot.idle()), rank(!y.slot.idle())),
		x.lastUse.Compare(y.lastUse),
	)
}

// rank orders what is not before what is.
func rank(is bool) int {
	if is {
		return 1
	}
	return 0
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
