package worker

import (
	"context"
	"time"

	"go.uber.org/zap"

	"waybill/internal/heralddb"
)

// Times of the lock session.
const (
	// reopenAfter spaces the tries to open one.
	reopenAfter = time.Second
	// askWithin bounds each question to another database between two pings:
	// one that hangs must not cost the session, and with it every hook.
	askWithin = 2 * time.Second
	// releaseWithin, beyond a lease, bounds giving everything back at the end:
	// the longest exchange and its write end within the lease.
	releaseWithin = 15 * time.Second
	// releaseEvery is how often the end looks for hooks that have gone quiet.
	releaseEvery = 100 * time.Millisecond
)

// Run owns hooks until ctx ends, then hands them over: no new attempts, those
// under way to their end, the locks held a while longer, then released.
func (o *Ownership) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := o.session(ctx); err != nil && ctx.Err() == nil {
			o.report("the lock session cannot be kept", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reopenAfter):
		}
	}
}

// session holds locks on one connection until it breaks or ctx ends. Nothing
// that is asked on it carries ctx: the driver answers a cancelled statement by
// closing the connection, and the end of the process would look like a crash.
func (o *Ownership) session(ctx context.Context) error {
	s, err := heralddb.OpenLockSession(ctx, o.cfg.LockDSN)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	defer o.loseAll()
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	r := &round{o: o, s: s, failed: map[string]int{}}
	for {
		if err := r.run(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return o.handOver(r)
		case <-tick.C:
		case <-o.wake:
		}
	}
}

// handOver gives everything back at the end of the process's life.
func (o *Ownership) handOver(r *round) error {
	err := o.handAllOver(r)
	if err != nil {
		o.cfg.Log.Warn("hand-over broke off, the next owners wait a lease", zap.Int("hooks", o.Owned()), zap.Error(err))
	}
	return err
}

func (o *Ownership) handAllOver(r *round) error {
	if err := r.part(); err != nil {
		return err
	}
	o.leaveAll()
	deadline := time.NewTimer(o.cfg.Lease + releaseWithin)
	defer deadline.Stop()
	tick := time.NewTicker(releaseEvery)
	defer tick.Stop()
	for {
		if err := r.releaseIdle(); err != nil {
			return err
		}
		if o.Owned() == 0 {
			return nil
		}
		if err := r.keepAlive(); err != nil {
			return err
		}
		select {
		case <-deadline.C:
			o.cfg.Log.Warn("hooks not handed over in time, their next owners wait a lease", zap.Int("hooks", o.Owned()))
			return nil
		case <-tick.C:
		}
	}
}

// report keeps the reason for readiness, empty when all is well, and logs a
// change of it.
func (o *Ownership) report(problem string, err error) {
	o.mu.Lock()
	before := o.problem
	o.problem = problem
	o.mu.Unlock()
	switch {
	case before == problem:
	case problem == "":
		o.cfg.Log.Info("hooks can be owned")
	default:
		o.cfg.Log.Error(problem+", nothing is sent", zap.Error(err))
	}
}
