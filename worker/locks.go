package worker

import (
	"context"
	"time"

	"go.uber.org/zap"

	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/internal/ledger"
)

// reopenAfter spaces the tries to open a lock session.
const reopenAfter = time.Second

// releaseWithin bounds giving everything back at the end: the longest exchange
// and its write have their own, shorter bounds before it.
const releaseWithin = 15 * time.Second

// Run owns hooks until ctx ends, then hands them over: no new attempts, those
// under way to their end, the locks held a while longer, then released.
func (o *Ownership) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := o.session(ctx); err != nil && ctx.Err() == nil {
			o.trouble("the lock session cannot be kept", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reopenAfter):
		}
	}
}

// session holds locks on one connection until it breaks or ctx ends.
func (o *Ownership) session(ctx context.Context) error {
	s, err := heralddb.OpenLockSession(ctx, o.cfg.LockDSN)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	defer o.loseAll()
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		if err := o.keep(ctx, s); err != nil {
			return err
		}
		if err := o.match(ctx, s); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return o.handOver(s)
		case <-tick.C:
		case <-o.wake:
		}
	}
}

// keep pings and, by the moment before the ping, extends what is ours.
func (o *Ownership) keep(ctx context.Context, s *heralddb.LockSession) error {
	begun := o.cfg.Clock()
	if err := s.Ping(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.valid, o.problem = begun.Add(validFor), ""
	return nil
}

// match takes the locks of hooks that are not ours yet and lets go of those
// that no longer exist. A lock that somebody else has (a call of Phorge's own
// under way) is asked for again at the next tick.
func (o *Ownership) match(ctx context.Context, s *heralddb.LockSession) error {
	hooks, err := o.cfg.Hooks(ctx)
	if err != nil {
		// The table will be readable again; what is owned stays owned.
		return nil
	}
	wanted := make(map[string]bool, len(hooks))
	pinged := o.cfg.Clock()
	for _, hook := range hooks {
		wanted[hook] = true
		if o.has(hook) {
			continue
		}
		if err := o.acquire(ctx, s, hook); err != nil {
			return err
		}
		if now := o.cfg.Clock(); now.Sub(pinged) > pingEvery {
			if err := o.keep(ctx, s); err != nil {
				return err
			}
			pinged = now
		}
	}
	o.leave(func(hook string) bool { return !wanted[hook] })
	return o.releaseIdle(ctx, s)
}

func (o *Ownership) has(hook string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tenures[hook] != nil
}

// acquire takes one hook's lock, if it is free. An owner record that nobody
// released may belong to a process with a POST still in flight, so nothing is
// sent until its claims have run out.
func (o *Ownership) acquire(ctx context.Context, s *heralddb.LockSession, hook string) error {
	name := herald.LockName(o.cfg.Namespace, hook)
	got, err := s.Acquire(ctx, name)
	if err != nil || !got {
		return err
	}
	clean, err := o.cfg.Records.Acquired(ctx, o.record(hook, s.Connection()))
	if err != nil {
		// Without a record nobody could find the owner: not ours, try again.
		o.trouble("owner records cannot be written", err)
		return s.Release(ctx, name)
	}
	now := o.cfg.Clock()
	t := &tenure{lost: make(chan struct{}), from: now, lastUse: now, name: name, connection: s.Connection()}
	if o.cfg.SameServer {
		t.lock = herald.Lock{Name: name, Connection: s.Connection()}
	}
	if !clean {
		t.from = now.Add(o.cfg.Lease)
		o.cfg.Log.Warn("hook taken over from an owner that did not hand it over, sending begins when its claims have run out",
			zap.String("hook", hook), zap.Duration("wait", o.cfg.Lease))
	}
	o.mu.Lock()
	o.tenures[hook] = t
	o.mu.Unlock()
	return nil
}

func (o *Ownership) record(hook string, connection uint64) ledger.Owner {
	return ledger.Owner{HookPHID: hook, Instance: o.cfg.Instance, TaskQueue: o.cfg.Queue, Connection: connection}
}

// leave stops admission to the hooks that which names.
func (o *Ownership) leave(which func(hook string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for hook, t := range o.tenures {
		if which(hook) {
			t.leaving = true
		}
	}
}

// releaseIdle gives back the hooks being left that have been quiet for long
// enough: the record first, then the lock, so that whoever gets the lock finds
// the record as it is meant.
func (o *Ownership) releaseIdle(ctx context.Context, s *heralddb.LockSession) error {
	for hook, t := range o.quiet() {
		if err := o.cfg.Records.Released(ctx, o.record(hook, t.connection)); err != nil {
			o.cfg.Log.Warn("hand-over not recorded, the hook's next owner waits a lease",
				zap.String("hook", hook), zap.Error(err))
		}
		if err := s.Release(ctx, t.name); err != nil {
			return err
		}
		o.mu.Lock()
		delete(o.tenures, hook)
		o.mu.Unlock()
	}
	return nil
}

func (o *Ownership) quiet() map[string]*tenure {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[string]*tenure{}
	for hook, t := range o.tenures {
		if t.leaving && t.slot.idle() && (!t.used || o.cfg.Clock().Sub(t.lastUse) >= holdAfter) {
			out[hook] = t
		}
	}
	return out
}

// handOver gives everything back at the end of the process's life.
func (o *Ownership) handOver(s *heralddb.LockSession) error {
	o.mu.Lock()
	o.stopping = true
	o.mu.Unlock()
	o.leave(func(string) bool { return true })
	ctx, cancel := context.WithTimeout(context.Background(), o.cfg.Lease+releaseWithin)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	pinged := o.cfg.Clock()
	for {
		if err := o.releaseIdle(ctx, s); err != nil {
			return err
		}
		if o.Owned() == 0 {
			return nil
		}
		if now := o.cfg.Clock(); now.Sub(pinged) > pingEvery {
			if err := o.keep(ctx, s); err != nil {
				return err
			}
			pinged = now
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// loseAll ends every tenure at once: the session is gone, or about to be.
func (o *Ownership) loseAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for hook, t := range o.tenures {
		close(t.lost)
		delete(o.tenures, hook)
	}
	o.valid = time.Time{}
}

// trouble keeps the reason for readiness and logs it when it is a new one.
func (o *Ownership) trouble(problem string, err error) {
	o.mu.Lock()
	known := o.problem == problem
	o.problem = problem
	o.mu.Unlock()
	if !known {
		o.cfg.Log.Error(problem+", nothing is sent", zap.Error(err))
	}
}
