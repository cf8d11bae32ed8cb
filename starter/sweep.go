package starter

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"waybill/internal/heralddb"
	"waybill/internal/ledger"
)

// sweep looks again at recent rows and at a share of the hooks.
func (s *Starter) sweep(ctx context.Context, step int) {
	matched := s.matchHooks(ctx)
	s.lateCommits(ctx)
	for _, f := range s.share(step) {
		f.wake(true)
	}
	if matched && each(orphanEvery, step) {
		s.orphans(ctx)
	}
	s.dueLife()
	if each(censusEvery, step) {
		s.census(ctx)
	}
	if each(registerEvery, step) && !s.attributes.Load() {
		s.register(ctx)
	}
}

// share lists the feeds whose turn it is: every one within sweepSteps, and all
// at once when Temporal may be another. Now and then one of them doubts it.
func (s *Starter) share(step int) (share []*feed) {
	life := s.lives.Load()
	all := life != s.life
	s.life = life
	s.mu.Lock()
	defer s.mu.Unlock()
	doubt := each(doubtEvery, step)
	for hook, f := range s.feeds {
		if doubt && s.known[hook] {
			doubt = false
			f.doubted.Store(true)
			share = append(share, f)
			continue
		}
		if all || f.number%sweepSteps == step%sweepSteps {
			share = append(share, f)
		}
	}
	return share
}

// each reports whether something that happens every d is due at this step.
func each(d time.Duration, step int) bool { return step%int(d/sweepEvery) == 0 }

// lateCommits wakes hooks for rows that became visible below the watermark.
// What earlier sweeps saw is known: an idle system wakes nobody.
func (s *Starter) lateCommits(ctx context.Context) {
	lowest := s.watermark - min(s.watermark, recentIDs)
	low := max(lowest, s.mark())
	rows, err := s.cfg.Queue.Since(ctx, low, recentIDs)
	if err != nil {
		s.marks = nil // what was not read now is read with the next
		return
	}
	ids := make([]uint64, 0, len(rows))
	var late []heralddb.Arrival
	for _, a := range rows {
		ids = append(ids, a.ID)
		if _, seen := slices.BinarySearch(s.recent, a.ID); !seen {
			late = append(late, a)
		}
	}
	s.remember(lowest, low, ids)
	s.strange(late)
	s.arrived(ctx, late)
}

// mark notes the watermark and returns that of lateSteps ago: ids given out
// since then are above it. 0, for all recent ids: it is not that long since all
// were read.
func (s *Starter) mark() (low uint64) {
	if len(s.marks) == lateSteps {
		s.marks = s.marks[1:]
	}
	s.marks = append(s.marks, s.watermark)
	s.sinceAll++
	if len(s.marks) < lateSteps || s.sinceAll >= lateSteps {
		s.sinceAll = 0
		return 0
	}
	return s.marks[0]
}

// remember keeps the ids between lowest and low, and those just read above low.
func (s *Starter) remember(lowest, low uint64, read []uint64) {
	from, _ := slices.BinarySearch(s.recent, lowest+1)
	to, _ := slices.BinarySearch(s.recent, low+1)
	s.recent = append(slices.Clone(s.recent[from:to]), read...)
}

// strange reports rows that no rule will ever send or end. Each recent row
// passes here once, those from before the start with the first sweep.
func (s *Starter) strange(rows []heralddb.Arrival) {
	for _, a := range rows {
		if a.Strange {
			s.cfg.Log.Warn("request cannot be processed and stays as it is",
				zap.Uint64("id", a.ID), zap.String("request", a.PHID), zap.String("hook", a.HookPHID),
				zap.String("reason", "Its status, its result or the time of its last call is none that Phorge writes."))
		}
	}
}

// matchHooks starts feeds for new hooks and tells those of hooks that are gone.
// false: the hooks could not be listed.
func (s *Starter) matchHooks(ctx context.Context) bool {
	hooks, err := s.cfg.Hooks(ctx)
	s.notes.note(ctx, theHooks, err)
	if err != nil {
		return false
	}
	if slices.Equal(hooks, s.listed) {
		return true
	}
	s.listed = hooks
	known := make(map[string]bool, len(hooks))
	for _, h := range hooks {
		known[h] = true
	}
	s.mu.Lock()
	before := s.known
	s.known = known
	s.mu.Unlock()
	for h := range before {
		if !known[h] {
			s.feed(ctx, h).wake(true)
		}
	}
	fresh := false
	for h := range known {
		if !before[h] {
			fresh = true
			s.feed(ctx, h).wake(true)
		}
	}
	if fresh {
		s.cfg.Owner.Wake()
	}
	return true
}

// orphans wakes feeds for rows whose hook has no row: their workflows say so.
func (s *Starter) orphans(ctx context.Context) {
	waiting, err := s.cfg.Queue.Waiting(ctx)
	if err != nil {
		return
	}
	for _, h := range waiting {
		if !s.exists(h) {
			s.feed(ctx, h).wake(true)
		}
	}
}

func (s *Starter) exists(hook string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[hook]
}

// readPauses keeps feeds from starting what admission would refuse, and wakes
// hooks that may continue.
func (s *Starter) readPauses(ctx context.Context) {
	all, err := s.cfg.Pauses.Pauses(ctx)
	s.notes.note(ctx, thePauses, err)
	if err != nil {
		return
	}
	paused := make(map[string]bool, len(all))
	for _, p := range all {
		paused[p.HookPHID] = true
	}
	s.mu.Lock()
	before := s.paused
	s.paused = paused
	var resumed []*feed
	for h, f := range s.feeds {
		if holds(before, h) && !holds(paused, h) {
			resumed = append(resumed, f)
		}
	}
	s.mu.Unlock()
	for _, f := range resumed {
		f.wake(true)
	}
}

// holds reports whether a hook is paused, by itself or with all others.
func holds(paused map[string]bool, hook string) bool { return paused[hook] || paused[ledger.AllHooks] }

func (s *Starter) isPaused(hook string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return holds(s.paused, hook)
}
