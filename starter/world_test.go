package starter

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/workflows"
)

// row is a row of the fake queue.
type row struct {
	herald.Candidate
	hidden bool // not committed yet
	silent bool // a poll does not see it: it was there before
	odd    bool // in a state that nobody knows
	done   bool
}

// started is one start of a workflow.
type started struct {
	id         string
	at         time.Time
	attributes bool
}

// world is everything around a starter, in memory: Phorge's tables, the pause
// table, Temporal and the process that owns hooks. It runs in a synctest bubble,
// where time passes when everybody waits, and where a goroutine that is left
// behind fails the test.
type world struct {
	t       *testing.T
	starter *Starter
	logs    *observer.ObservedLogs
	stop    func()

	mu                 sync.Mutex
	rows               []*row
	hooks              []string
	pauses             []string
	unowned            map[string]bool
	open               map[string]bool // workflows that are running
	starts             []started
	signals            []string
	calls              map[string]int   // of everything that is asked, by name
	broken             map[string]error // what fails, by name
	busy               map[string]int   // attempts under way, by hook
	mostBusy           int
	room               chan struct{}
	woken              int
	latency            time.Duration // of starting a hook's workflow
	starting, mostOnce int           // hooks' workflows being started, and the most at once
	miscount           int64         // by which a count of workflows is wrong

	// attempt is what becomes of a row's attempt, after took; nil delivers.
	attempt func(r *row) (e activities.Ended, took time.Duration)
	// result is what a workflow in another process ends with.
	result func(id string) (workflows.RequestResult, error)
}

// play runs a starter in a world of its own until the test's function returns.
func play(t *testing.T, prepare func(*world, *Config), test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		w := &world{
			t: t, logs: logs, unowned: map[string]bool{}, open: map[string]bool{}, calls: map[string]int{},
			broken: map[string]error{}, busy: map[string]int{}, room: make(chan struct{}, 16),
		}
		cfg := Config{
			Queue: w, Owner: w, Pauses: w, Hooks: w.Hooks, Temporal: w, Attributes: true,
			TaskQueue: "waybill-test", Poll: 100 * time.Millisecond, AttemptWithin: 30 * time.Second, Log: zap.New(core), Clock: time.Now,
		}
		if prepare != nil {
			prepare(w, &cfg)
		}
		w.starter = New(cfg)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.starter.Run(ctx) }()
		w.stop = func() { cancel(); <-ended }
		synctest.Wait()
		test(w)
		begun := time.Now()
		w.stop()
		if took := time.Since(begun); took > 0 {
			t.Errorf("stopping took %v", took)
		}
		synctest.Wait()
	})
}

// wait lets time pass.
func (w *world) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// ask counts a question and says what is wrong with asking it.
func (w *world) ask(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[name]++
	return w.broken[name]
}

func (w *world) asked(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[name]
}

// breaks makes something fail from now on; nil mends it.
func (w *world) breaks(name string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken[name] = err
}

var errAway = errors.New("away")

// add puts rows into the queue, named after their hook: "a/1".
func (w *world) add(names ...string) { w.addAs(row{}, names...) }

// addAs adds rows like the one given.
func (w *world) addAs(like row, names ...string) (added []*row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		hook, _, _ := strings.Cut(name, "/")
		r := like
		r.ID, r.PHID, r.HookPHID = uint64(len(w.rows)+1), name, hook
		w.rows = append(w.rows, &r)
		added = append(added, &r)
	}
	return added
}

// change does something to the world under its lock.
func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// requests are the rows whose workflows were started, in order.
func (w *world) requests() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.starts {
		if name, ok := strings.CutPrefix(s.id, "request/"); ok {
			names = append(names, name)
		}
	}
	return names
}

func (w *world) expect(want ...string) {
	w.t.Helper()
	if got := w.requests(); !slices.Equal(got, want) {
		w.t.Errorf("started %q, want %q", got, want)
	}
}

// ats are the moments of a request's starts.
func (w *world) ats(name string) (at []time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.starts {
		if s.id == "request/"+name {
			at = append(at, s.at)
		}
	}
	return at
}

// logged counts lines that contain a text.
func (w *world) logged(text string) int {
	return w.logs.Filter(func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, text) }).Len()
}

// The tables.

func (w *world) Hooks(context.Context) ([]string, error) {
	err := w.ask("hooks")
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.hooks), err
}

func (w *world) Pauses(context.Context) (out []herald.Pause, err error) {
	err = w.ask("pauses")
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pauses {
		out = append(out, herald.Pause{HookPHID: p})
	}
	return out, err
}

func (w *world) Newest(context.Context) (newest uint64, err error) {
	err = w.ask("newest")
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.rows {
		if !r.hidden {
			newest = max(newest, r.ID)
		}
	}
	return newest, err
}

func (w *world) Since(_ context.Context, mark uint64, limit int) (out []heralddb.Arrival, err error) {
	err = w.ask("since")
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.rows {
		if r.ID > mark && !r.hidden && !r.silent && len(out) < limit {
			out = append(out, heralddb.Arrival{ID: r.ID, PHID: r.PHID, HookPHID: r.HookPHID, Strange: r.odd})
		}
	}
	w.calls["rows since"] += len(out)
	return out, err
}

func (w *world) candidates(hook string, retry bool, limit int) (out []herald.Candidate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.rows {
		if r.HookPHID == hook && r.Retry == retry && !r.done && !r.hidden && len(out) < limit {
			out = append(out, r.Candidate)
		}
	}
	return out
}

func (w *world) Heads(_ context.Context, hook string, limit int) ([]herald.Candidate, error) {
	return w.candidates(hook, false, limit), w.ask("heads")
}

func (w *world) Due(_ context.Context, hook string, limit int) ([]herald.Candidate, error) {
	return w.candidates(hook, true, limit), w.ask("due")
}

func (w *world) Waiting(context.Context) (hooks []string, err error) {
	err = w.ask("waiting")
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.rows {
		hooks = append(hooks, r.HookPHID)
	}
	slices.Sort(hooks)
	return slices.Compact(hooks), err
}

func (w *world) Unchanged(_ context.Context, c herald.Candidate) (bool, error) {
	err := w.ask("unchanged")
	w.mu.Lock()
	defer w.mu.Unlock()
	i, ok := slices.BinarySearchFunc(w.rows, c.ID, func(r *row, id uint64) int { return cmp.Compare(r.ID, id) })
	return ok && !w.rows[i].done && w.rows[i].Retry == c.Retry, err
}

// The owner.

func (w *world) Ready(hook string) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls["ready"]++
	return 0, !w.unowned[hook]
}

func (w *world) Reserve(ctx context.Context, _ string) (func(), error) {
	select {
	case w.room <- struct{}{}:
		return func() { <-w.room }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *world) Wake() { w.change(func() { w.woken++ }) }

// Temporal.

func (w *world) ExecuteWorkflow(ctx context.Context, o client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	if err := errors.Join(ctx.Err(), w.ask("execute")); err != nil {
		return nil, err
	}
	if o.WorkflowIDConflictPolicy != 0 {
		w.change(func() { w.starting++; w.mostOnce = max(w.mostOnce, w.starting) })
		time.Sleep(w.latency)
		w.change(func() { w.starting-- })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	with := o.TypedSearchAttributes.Size() > 0
	if err := w.broken["attributes"]; with && err != nil {
		return nil, err
	}
	if w.open[o.ID] {
		if o.WorkflowExecutionErrorWhenAlreadyStarted {
			return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("open", "", "")
		}
		return &run{world: w, id: o.ID}, nil
	}
	w.starts = append(w.starts, started{o.ID, time.Now(), with})
	if name, ok := strings.CutPrefix(o.ID, "request/"); ok {
		w.begin(name)
	} else {
		w.open[o.ID] = true
	}
	return &run{world: w, id: o.ID}, nil
}

// begin makes an attempt on a row, as a worker would. The world is locked.
func (w *world) begin(name string) {
	i := slices.IndexFunc(w.rows, func(r *row) bool { return r.PHID == name })
	r := w.rows[i]
	w.busy[r.HookPHID]++
	w.mostBusy = max(w.mostBusy, w.busy[r.HookPHID])
	e, took := activities.Ended{State: activities.Won}, time.Duration(0)
	if w.attempt != nil {
		e, took = w.attempt(r)
	} else {
		r.done = true
	}
	e.Ref = activities.Ref{ID: r.ID, PHID: r.PHID, HookPHID: r.HookPHID}
	time.AfterFunc(took, func() {
		w.change(func() { w.busy[r.HookPHID]-- })
		if took < never {
			w.starter.Ended(e)
		}
	})
}

// never is a duration after which no end is heard of.
const never = time.Hour

func (w *world) SignalWorkflow(_ context.Context, id, _, signal string, _ any) error {
	if err := w.ask("signal"); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.signals = append(w.signals, signal+" "+id)
	if !w.open[id] {
		return serviceerror.NewNotFound("no such workflow")
	}
	delete(w.open, id)
	return nil
}

// GetRunID is one per start of the workflow.
func (r *run) GetRunID() string {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	n := 0
	for _, s := range r.world.starts {
		if s.id == r.id {
			n++
		}
	}
	return strconv.Itoa(n)
}

// run is a started workflow.
type run struct {
	client.WorkflowRun
	world *world
	id    string
}

func (r *run) Get(ctx context.Context, into any) error {
	if r.world.result == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	res, err := r.world.result(r.id)
	if err == nil {
		*into.(*workflows.RequestResult) = res
	}
	return err
}
