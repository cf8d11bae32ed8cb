package worker

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"waybill/activities"
	"waybill/internal/herald"
)

// Times and sizes of looking back at finished rows.
const (
	// lookBackAfter is when a finished row is looked at again. A call of
	// Phorge's own lasts 15 s at most, and its save follows at once: whatever
	// it read before our write has been saved by then.
	lookBackAfter = 20 * time.Second
	lookBackEvery = time.Second
	// lookBackAtOnce rows are read in one statement, by primary key.
	lookBackAtOnce = 200
	// rememberedAtMost bounds memory, some 5 MB: a thousand deliveries a
	// second for those 20 s. Rows beyond it are not looked at again.
	rememberedAtMost = 20_000
)

// endings says how rows stand now.
type endings interface {
	Endings(ctx context.Context, ids []uint64) (map[uint64]herald.Ending, error)
}

// OverwrittenConfig is what looking back needs; every field is required.
type OverwrittenConfig struct {
	Rows endings
	// Count is called for each row that was overwritten.
	Count func()
	Log   *zap.Logger
	Clock func() time.Time
}

// Overwritten looks once more at each row that this process has finished, and
// reports those that say something else by then. Phorge's saves have no guard:
// one of a worker that read the row before our write replaces it, and the row
// no longer says what was delivered. It is reported and never fought, because
// nobody can know which of the two is the better truth. What this process has
// not looked at when it ends stays unseen.
type Overwritten struct {
	cfg OverwrittenConfig

	mu   sync.Mutex
	line []written // oldest first
	last map[uint64]written
}

// written is a result as it stood.
type written struct {
	ref     activities.Ref
	version int64 // of the claim it was written under
	ending  herald.Ending
	due     time.Time
}

// NewOverwritten makes one that remembers nothing yet.
func NewOverwritten(cfg OverwrittenConfig) *Overwritten {
	return &Overwritten{cfg: cfg, last: map[uint64]written{}}
}

// Wrote remembers a final result. One that leaves the row queued is not: the
// row is meant to change.
func (o *Overwritten) Wrote(ref activities.Ref, w herald.ResultWrite) {
	if w.Verdict.Status == herald.StatusQueued {
		return
	}
	o.mu.Lock()
	now := written{ref: ref, version: w.Claim.Version, ending: w.Verdict.Ending(), due: o.cfg.Clock().Add(lookBackAfter)}
	before, known := o.last[ref.ID]
	again := known && before.version != now.version
	if (known && !again) || len(o.line) >= rememberedAtMost {
		o.mu.Unlock()
		return // the same write, told twice; or too many
	}
	o.last[ref.ID] = now
	o.line = append(o.line, now)
	o.mu.Unlock()
	if again {
		// Only a row that somebody put back into the queue is finished twice.
		o.report(before, "queued, and finished again as "+now.ending.String())
	}
}

// Run looks back until ctx ends.
func (o *Overwritten) Run(ctx context.Context) {
	tick := time.NewTicker(lookBackEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for o.look(ctx) {
		}
	}
}

// look looks at the rows whose time has come, lookBackAtOnce at most, and says
// whether there may be more. Rows that cannot be read are kept for later.
func (o *Overwritten) look(ctx context.Context) (more bool) {
	due := o.due()
	if len(due) == 0 {
		return false
	}
	ids := make([]uint64, len(due))
	for i, w := range due {
		ids[i] = w.ref.ID
	}
	stand, err := o.cfg.Rows.Endings(ctx, ids)
	if err != nil {
		return false // readiness says that the table cannot be read
	}
	for _, w := range o.done(len(due)) {
		if now, there := stand[w.ref.ID]; there && now != w.ending {
			o.report(w, now.String())
		}
	}
	return len(due) == lookBackAtOnce
}

// due are the first rows of the line whose time has come; they stay in it.
func (o *Overwritten) due() []written {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, now := 0, o.cfg.Clock()
	for n < min(len(o.line), lookBackAtOnce) && !o.line[n].due.After(now) {
		n++
	}
	return o.line[:n:n]
}

// done takes the first n rows out of the line and returns those of them that
// were not finished once more meanwhile.
func (o *Overwritten) done(n int) (rows []written) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range o.line[:n] {
		if o.last[w.ref.ID].version == w.version {
			delete(o.last, w.ref.ID)
			rows = append(rows, w)
		}
	}
	o.line = o.line[n:]
	return rows
}

func (o *Overwritten) report(w written, stands string) {
	o.cfg.Count()
	o.cfg.Log.Warn("a finished request was overwritten by somebody else",
		zap.String("request", w.ref.PHID), zap.String("hook", w.ref.HookPHID), zap.Int64("version", w.version),
		zap.String("stood", w.ending.String()), zap.String("stands", stands))
}

// Witness passes on what the activities come across.
type Witness struct {
	*Silence
	*Overwritten
}
