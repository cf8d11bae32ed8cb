package starter

import (
	"context"
	"time"

	"waybill/internal/herald"
)

// lookahead is how many heads one read takes.
const lookahead = 32

// rest is why a row is not a candidate for a while: a version of it.
type rest struct {
	version int64
	until   time.Time
}

// next chooses the next row: never-tried ones and due retries in turn.
func (f *feed) next(ctx context.Context) (*herald.Candidate, error) {
	if err := f.refill(ctx); err != nil {
		return nil, err
	}
	first, second := &f.heads, &f.due
	if f.dueTurn {
		first, second = second, first
	}
	f.dueTurn = !f.dueTurn
	if c := f.pop(first); c != nil {
		return c, nil
	}
	return f.pop(second), nil
}

// refill reads the line where what was read is used up. Rows at rest are in the
// answers, so the limits leave room for others.
func (f *feed) refill(ctx context.Context) (err error) {
	f.prune()
	limit := lookahead + len(f.restedBy)
	if len(f.heads) == 0 {
		if f.heads, err = f.starter.cfg.Queue.Heads(ctx, f.hook, limit); err != nil {
			return err
		}
	}
	if len(f.due) > 0 || !f.takeLook() {
		return nil
	}
	f.due, err = f.starter.cfg.Queue.Due(ctx, f.hook, limit)
	if err != nil || len(f.due) == limit {
		f.lookAtDue()
	}
	return err
}

// takeLook reports whether due retries should be looked for, once.
func (f *feed) takeLook() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	look := f.lookDue
	f.lookDue = false
	return look
}

// pop takes the first row that is not resting.
func (f *feed) pop(from *[]herald.Candidate) *herald.Candidate {
	for len(*from) > 0 {
		c := (*from)[0]
		*from = (*from)[1:]
		if r, resting := f.restedBy[c.ID]; !resting || r.version != c.Modified {
			return &c
		}
	}
	return nil
}

// leave keeps a version of a row from being a candidate for a while.
func (f *feed) leave(c herald.Candidate, d time.Duration) {
	f.restedBy[c.ID] = rest{version: c.Modified, until: f.starter.cfg.Clock().Add(d)}
}

// reread forgets what was read of the line, of which c was taken for nothing.
func (f *feed) reread(c herald.Candidate) {
	if c.Retry || len(f.due) > 0 {
		f.lookAtDue()
	}
	f.heads, f.due = nil, nil
}

// prune forgets rests that are over.
func (f *feed) prune() {
	now := f.starter.cfg.Clock()
	for id, r := range f.restedBy {
		if !now.Before(r.until) {
			delete(f.restedBy, id)
		}
	}
}
