package activities_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"waybill/activities"
	"waybill/internal/herald"
)

// errFault is what a fake fails with. It quotes what it must not.
var errFault = errors.New("the database went away")

// faults make calls fail, before or after their effect: the answer that is lost
// after a commit is the one that matters.
type faults struct {
	mu   sync.Mutex
	left map[string]int // "claim before" → how many more times
}

func (f *faults) set(point string, times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == nil {
		f.left = map[string]int{}
	}
	f.left[point] = times
}

func (f *faults) at(point string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left[point] == 0 {
		return nil
	}
	f.left[point]--
	return errFault
}

// table is Phorge's request table, with the rules of heralddb: compare-and-set,
// fence, and a clock of its own.
type table struct {
	*faults
	mu       sync.Mutex
	rows     map[uint64]*herald.Request
	hook     *herald.Hook
	evidence int64
	clock    int64
	claims   []herald.Claim
	last     herald.ResultWrite
	// loaded and claimed run once each, after the next load and within the next
	// claim: others do not wait for us.
	loaded, claimed func()
}

func (d *table) onLoad(f func())  { d.loaded = f }
func (d *table) onClaim(f func()) { d.claimed = f }

// once runs and forgets a hook of the above, outside the lock.
func (d *table) once(f *func()) {
	d.mu.Lock()
	run := *f
	*f = nil
	d.mu.Unlock()
	if run != nil {
		run()
	}
}

func (d *table) Load(_ context.Context, id uint64) (herald.Snapshot, error) {
	if err := d.at("load before"); err != nil {
		return herald.Snapshot{}, err
	}
	defer d.once(&d.loaded)
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rows[id]
	if r == nil {
		return herald.Snapshot{}, herald.ErrGone
	}
	return herald.Snapshot{Request: *r, Hook: d.hook, ThresholdFailure: d.evidence, Now: d.clock}, nil
}

func (d *table) Claim(_ context.Context, id uint64, seen int64, _ herald.Lock) (herald.Claim, bool, error) {
	if err := d.at("claim before"); err != nil {
		return herald.Claim{}, false, err
	}
	d.once(&d.claimed)
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rows[id]
	if seen > 4294967293 {
		return herald.Claim{}, false, herald.ErrUnclaimable
	}
	if r == nil || r.Status != herald.StatusQueued || r.Modified != seen {
		return herald.Claim{}, false, nil
	}
	r.Modified = max(r.Modified+1, d.clock)
	c := herald.Claim{ID: id, Version: r.Modified}
	d.claims = append(d.claims, c)
	if d.at("claim's version") != nil {
		return herald.Claim{}, false, herald.ErrNoVersion
	}
	if err := d.at("claim after"); err != nil {
		return herald.Claim{}, false, err
	}
	return c, true, nil
}

func (d *table) Finish(ctx context.Context, w herald.ResultWrite) (herald.WriteOutcome, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := d.at("finish before"); err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.Claim.Version > 4294967294 {
		return "", herald.ErrUnclaimable
	}
	r := d.rows[w.Claim.ID]
	switch {
	case r == nil:
		return herald.Collected, nil
	case r.Status == herald.StatusQueued && r.Modified == w.Claim.Version:
		d.write(r, w)
	case r.Status != w.Verdict.Status || r.LastResult != w.Verdict.Result || !bytes.Equal(r.Properties, w.Properties),
		r.Modified <= w.Claim.Version, r.Status == herald.StatusQueued && r.LastEpoch == w.Before:
		return herald.Fenced, nil
	}
	if err := d.at("finish after"); err != nil {
		return "", err
	}
	return herald.Written, nil
}

func (d *table) write(r *herald.Request, w herald.ResultWrite) {
	d.last = w
	r.Status, r.LastResult, r.Properties = w.Verdict.Status, w.Verdict.Result, w.Properties
	if r.LastEpoch = w.Epoch; w.Epoch == herald.EpochNow {
		r.LastEpoch = d.clock
	}
	r.Modified = max(r.Modified+1, d.clock)
}

// edit changes a row as anybody else might.
func (d *table) edit(id uint64, change func(*herald.Request)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d.rows[id])
}

func (d *table) collect(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.rows, id)
}

func (d *table) row(id uint64) herald.Request {
	r, _ := d.find(id)
	return r
}

func (d *table) find(id uint64) (herald.Request, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.rows[id]; r != nil {
		return *r, true
	}
	return herald.Request{}, false
}

// catalogue are Phorge's objects and transactions.
type catalogue struct {
	*faults
	object   herald.Knowledge
	found    []string
	readable bool
}

func (c *catalogue) Object(context.Context, herald.Table, string) (herald.Knowledge, error) {
	return c.object, c.at("object before")
}

func (c *catalogue) Transactions(context.Context, herald.Table, string, []string) ([]string, bool, error) {
	return c.found, c.readable, c.at("transactions before")
}

// gate owns one hook and has one slot, as the worker's ownership does.
type gate struct {
	mu      sync.Mutex
	refusal *activities.ClaimResult
	lost    chan struct{}
	unowned bool
	taken   int
	again   []bool
	tooks   []time.Duration
	ended   []activities.Ended
	since   time.Time // when the hook's lock was taken
}

func (g *gate) Admit(_ context.Context, _ activities.Ref, again bool) (*activities.Pass, activities.ClaimResult) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.again = append(g.again, again)
	if g.refusal != nil {
		return nil, *g.refusal
	}
	if g.taken > 0 {
		return nil, activities.ClaimResult{State: activities.Busy, Reason: "busy"}
	}
	g.taken++
	var once sync.Once
	return &activities.Pass{
		Queue: "waybill/me", Fast: true, Lock: herald.Lock{Name: "lock", Connection: 7}, Since: g.since, Lost: g.lost,
		Owned: func() bool { g.mu.Lock(); defer g.mu.Unlock(); return !g.unowned },
		Done: func(took time.Duration) {
			once.Do(func() {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.taken--
				g.tooks = append(g.tooks, took)
			})
		},
	}, activities.ClaimResult{}
}

func (g *gate) Ended(e activities.Ended) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = append(g.ended, e)
}

func (g *gate) slots() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken
}

func (g *gate) ends() []activities.Ended {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.ended)
}

func (g *gate) lastTook() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tooks[len(g.tooks)-1]
}

// receiver answers calls and remembers them.
type receiver struct {
	mu     sync.Mutex
	answer func(ctx context.Context, c activities.Call) activities.Reply
	calls  []activities.Call
}

func (r *receiver) Post(ctx context.Context, c activities.Call) activities.Reply {
	r.mu.Lock()
	r.calls = append(r.calls, c)
	answer := r.answer
	r.mu.Unlock()
	return answer(ctx, c)
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// answers is a receiver's reply with an HTTP status.
func answers(status int) func(context.Context, activities.Call) activities.Reply {
	return replies(activities.Reply{Answer: herald.Answer{HTTPStatus: status}, Sent: true, Took: time.Millisecond})
}

func replies(r activities.Reply) func(context.Context, activities.Call) activities.Reply {
	return func(context.Context, activities.Call) activities.Reply { return r }
}

// counts is a meter.
type counts struct {
	mu       sync.Mutex
	claims   map[activities.ClaimState]int
	attempts map[string]int
	waiting  int
	most     int
}

func (c *counts) Claim(s activities.ClaimState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claims[s]++
}

func (c *counts) Attempt(outcome string, _ time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts[outcome]++
}

func (c *counts) WriteBacksWaiting(delta int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting += delta
	c.most = max(c.most, c.waiting)
}

func (c *counts) of(s activities.ClaimState) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.claims[s]
}

func (c *counts) outcomes() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.attempts)
}

func (c *counts) writeBacks() (now, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting, c.most
}

// clock is the process's own, moved by tests.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// eventually polls for what happens on another goroutine.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within a minute: %s", what)
		case <-tick.C:
		}
	}
}
