package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/internal/ledger"
)

// round is one look, every second, at which locks should be held on a session.
// Its errors end the session; all other trouble waits for the next round.
type round struct {
	o      *Ownership
	s      *heralddb.LockSession
	me     ledger.Session
	joined bool
	number int
	pinged time.Time
	// unrecorded is why Waybill's database could not be used in this round.
	unrecorded error
	// apart is the round up to which the process does not take part: its owner
	// records could not be written. failed is the same for single hooks.
	apart   int
	failed  map[string]int
	unclean int
}

func (r *round) run(ctx context.Context) error {
	r.number++
	r.unrecorded, r.unclean = nil, 0
	maps.DeleteFunc(r.failed, func(_ string, until int) bool { return until <= r.number })
	if err := r.keep(); err != nil {
		return err
	}
	if r.number < r.apart {
		return r.releaseIdle()
	}
	hooks, err := bounded(r.o.cfg.Hooks)
	if err != nil {
		// What is owned stays owned until the table can be read again; readiness
		// looks at that table itself. No part is left to this process meanwhile.
		return errors.Join(r.part(), r.releaseIdle())
	}
	if err := r.join(); err != nil {
		return err
	}
	if r.unrecorded == nil {
		if err := r.match(ctx, hooks); err != nil {
			return err
		}
	}
	if r.unclean > 0 {
		r.o.cfg.Log.Warn("hooks taken over from owners that did not hand them over, sending begins when their claims have run out",
			zap.Int("hooks", r.unclean), zap.Duration("wait", r.o.cfg.Lease))
	}
	if r.unrecorded != nil {
		r.o.report(problemRecords, r.unrecorded)
		if err := r.withdraw(); err != nil {
			return err
		}
	} else {
		r.o.report("", nil)
	}
	return r.releaseIdle()
}

// join makes the session known to the others, which leave it its part: as one
// that holds a lock of its own. An error is the session's.
func (r *round) join() error {
	if r.joined {
		return nil
	}
	r.me = ledger.Session{Instance: r.o.cfg.Instance, AliveLock: "waybill-alive-" + rand.Text(), Feeds: r.o.cfg.Feeds}
	got, err := r.s.Acquire(context.Background(), r.me.AliveLock)
	if err == nil && !got {
		err = errors.New("the lock that shows this process alive is taken")
	}
	if err != nil {
		return err
	}
	_, r.unrecorded = bounded(func(ctx context.Context) (any, error) { return nil, r.o.cfg.Sessions.Joined(ctx, r.me) })
	r.joined = true
	return nil
}

// withdraw tells the others by the lock alone not to leave hooks to a process
// that cannot take them. What it owns it keeps, until it can join again.
func (r *round) withdraw() error {
	if !r.joined {
		return nil
	}
	r.joined = false
	return r.s.Release(context.Background(), r.me.AliveLock)
}

// part makes this process's hooks free for the others to count on.
func (r *round) part() error {
	if !r.joined {
		return nil
	}
	_, err := bounded(func(ctx context.Context) (bool, error) { return r.o.cfg.Sessions.Left(ctx, r.me) })
	if err != nil {
		r.o.cfg.Log.Warn("this process's end is not recorded, the others see it by its lock", zap.Error(err))
	}
	return r.withdraw()
}

// keep pings and, by the moment before the ping, extends what is ours.
func (r *round) keep() error {
	begun := r.o.cfg.Clock()
	if err := r.s.Ping(context.Background()); err != nil {
		return err
	}
	r.pinged = begun
	r.o.mu.Lock()
	defer r.o.mu.Unlock()
	r.o.valid = begun.Add(validFor)
	return nil
}

// keepAlive pings when it is time again, between other questions.
func (r *round) keepAlive() error {
	if r.o.cfg.Clock().Sub(r.pinged) < pingEvery {
		return nil
	}
	return r.keep()
}

// match takes this process's part of the hooks and lets go of what is above it
// and of hooks that no longer exist. A lock that somebody else has (a call of
// Phorge's own under way) is asked for again in the next round.
func (r *round) match(ctx context.Context, hooks []string) error {
	s, err := r.share(ctx, len(hooks))
	if err != nil || r.unrecorded != nil {
		return err
	}
	wanted := make(map[string]bool, len(hooks))
	for _, hook := range hooks {
		wanted[hook] = true
	}
	room := r.o.settle(wanted, s)
	missing := slices.DeleteFunc(hooks, r.o.has)
	if room == 0 || len(missing) == 0 {
		return nil
	}
	if err := r.keepAlive(); err != nil {
		return err
	}
	return r.acquireSome(ctx, r.candidates(missing, s), room)
}

// acquireSome takes at most room of the hooks' locks. One hook whose record
// cannot be written, because somebody has locked the row, is left alone for a
// while; after two of them nothing is written any more.
func (r *round) acquireSome(ctx context.Context, hooks []string, room int) error {
	before := r.o.Owned()
	for _, hook := range hooks {
		if ctx.Err() != nil || r.unrecorded != nil || r.o.Owned()-before >= room {
			break // hand over what there is, or try again in a second
		}
		if err := r.acquire(hook); err != nil {
			return err
		}
		if err := r.keepAlive(); err != nil {
			return err
		}
	}
	return nil //nolint:nilerr // run reports what was not recorded
}

// bounded asks another database without letting it hold up the session.
func bounded[T any](ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	return ask(ctx)
}

// acquire takes one hook's lock, if it is free. An owner record that nobody
// released may belong to a process with a POST still in flight, so nothing is
// sent until its claims have run out.
func (r *round) acquire(hook string) error {
	name := herald.LockName(r.o.cfg.Namespace, hook)
	got, err := r.s.Acquire(context.Background(), name)
	if err != nil || !got {
		return err
	}
	clean, err := bounded(func(ctx context.Context) (bool, error) {
		return r.o.cfg.Records.Acquired(ctx, r.record(hook))
	})
	if err != nil {
		// Without a record nobody could find the owner: not ours, try again.
		r.failed[hook] = r.number + restRounds
		r.o.owe(hook)
		if len(r.failed) > 1 {
			r.unrecorded, r.apart = err, r.number+restRounds
			clear(r.failed)
		} else {
			r.o.cfg.Log.Warn("a hook's owner record cannot be written, the hook waits", zap.String("hook", hook), zap.Error(err))
		}
		return r.s.Release(context.Background(), name)
	}
	if !clean {
		r.unclean++
	}
	r.o.begin(hook, name, r.s.Connection(), clean)
	return nil
}

// release marks the record of a hook that nothing is owed to any more. Given up
// before a former owner's claims have run out, the next one has to wait for them
// too: the record says so by staying.
func (r *round) release(hook string, t *tenure) error {
	if r.o.waiting(t) {
		return nil
	}
	_, err := bounded(func(ctx context.Context) (any, error) {
		return nil, r.o.cfg.Records.Released(ctx, r.record(hook))
	})
	return err
}

func (r *round) record(hook string) ledger.Owner {
	c := r.o.cfg
	return ledger.Owner{
		HookPHID: hook, Instance: c.Instance, TaskQueue: c.Queue, Connection: r.s.Connection(),
		Waits: r.o.owed(hook), Lease: c.Lease,
	}
}

// releaseIdle gives back the hooks being left that have been quiet for long
// enough: the record first, then the lock, so that whoever gets the lock finds
// the record as it is meant. From the moment a hook counts as quiet nothing can
// enter it any more.
func (r *round) releaseIdle() error {
	unrecorded := 0
	var reason error
	defer func() {
		if unrecorded > 0 {
			r.o.cfg.Log.Warn("hand-over not recorded, the hooks' next owners wait a lease",
				zap.Int("hooks", unrecorded), zap.Error(reason))
		}
	}()
	for hook, t := range r.o.quiet() {
		// A database that hangs is waited for once, not for each of many hooks.
		if reason == nil {
			reason = r.release(hook, t)
		}
		if reason != nil {
			unrecorded++
		}
		if err := r.s.Release(context.Background(), t.name); err != nil {
			return err
		}
		r.o.end(hook)
		if err := r.keepAlive(); err != nil {
			return err
		}
	}
	return nil
}
