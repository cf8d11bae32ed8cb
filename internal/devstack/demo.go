package devstack

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// demoInterval is the pause between two events of the trickle: often enough
// that something moves on the screen, rarely enough to read it.
const demoInterval = 2 * time.Second

// demoTasks is how many tasks the demo's events are about.
const demoTasks = 3

// demoHook is one hook of the demo: its name, the endpoint it calls, and every
// how many events of the trickle it is called (0: only at the start). Rows of
// the hooks that fail are retried forever and would pile up otherwise.
type demoHook struct {
	name, endpoint string
	every          int
}

// demoHooks in the order they are created.
func demoHooks() []demoHook {
	return []demoHook{
		{"healthy", EndpointHealthy, 1},
		{"slow", EndpointSlow, 5},
		{"failing", EndpointFail, 30},
		{"hanging", EndpointHang, 0},
	}
}

// DemoConfig configures a demo.
type DemoConfig struct {
	Phorge   *Phorge   // created with CreatePhorge; required
	Receiver *Receiver // required
	// Interval between two events of Run; 0 for two seconds.
	Interval time.Duration
}

// Demo plays a Phorge at work: four hooks, some tasks, and events that call
// the hooks in all three ways Phorge does.
//
// Run, Enqueue and EnqueueTo may be called at the same time.
type Demo struct {
	cfg    DemoConfig
	user   string
	tasks  []string
	hooks  map[string]Hook // by name
	mu     sync.Mutex
	events int
}

// NewDemo creates the hooks that are missing (each with a random key, so no
// two installations share one), points existing ones to the receiver's present
// address, and teaches the receiver their keys.
func NewDemo(ctx context.Context, cfg DemoConfig) (*Demo, error) {
	if cfg.Interval == 0 {
		cfg.Interval = demoInterval
	}
	d := &Demo{cfg: cfg, hooks: map[string]Hook{}}
	if err := d.findHooks(ctx); err != nil {
		return nil, fmt.Errorf("demo hooks: %w", err)
	}
	if err := d.createObjects(ctx); err != nil {
		return nil, fmt.Errorf("demo tasks: %w", err)
	}
	return d, nil
}

// findHooks takes the hooks of an earlier run by name.
func (d *Demo) findHooks(ctx context.Context) error {
	existing, err := d.cfg.Phorge.Hooks(ctx)
	if err != nil {
		return err
	}
	for _, h := range existing {
		d.hooks[h.Name] = h
	}
	for _, want := range demoHooks() {
		if err := d.ensureHook(ctx, want); err != nil {
			return err
		}
	}
	return nil
}

func (d *Demo) ensureHook(ctx context.Context, want demoHook) error {
	uri := d.cfg.Receiver.URL(want.endpoint)
	hook, found := d.hooks[want.name]
	var err error
	switch {
	case !found:
		hook, err = d.cfg.Phorge.CreateHook(ctx, Hook{Name: want.name, URI: uri})
	case hook.URI != uri:
		hook.URI = uri
		err = d.cfg.Phorge.SetHookURI(ctx, hook.PHID, uri)
	}
	if err != nil {
		return err
	}
	d.hooks[want.name] = hook
	d.cfg.Receiver.Trust(want.endpoint, hook.Key)
	return nil
}

// createObjects makes a user and tasks for this run. Their names carry
// something random because Phorge's are unique.
func (d *Demo) createObjects(ctx context.Context) (err error) {
	if d.user, err = d.cfg.Phorge.CreateUser(ctx, "demo-"+RandomName(8)); err != nil {
		return err
	}
	for i := range demoTasks {
		task, err := d.cfg.Phorge.CreateTask(ctx, d.user, fmt.Sprintf("Demo task %d", i+1))
		if err != nil {
			return err
		}
		d.tasks = append(d.tasks, task)
	}
	return nil
}

// Hooks are the demo's hooks, in a fixed order.
func (d *Demo) Hooks() []Hook {
	var hooks []Hook
	for _, h := range demoHooks() {
		hooks = append(hooks, d.hooks[h.name])
	}
	return hooks
}

// Endpoint is the receiver's endpoint that a hook of the demo calls.
func (d *Demo) Endpoint(name string) (string, error) {
	for _, h := range demoHooks() {
		if h.name == name {
			return h.endpoint, nil
		}
	}
	return "", noSuchHook(name)
}

// Hook finds a hook of the demo by name.
func (d *Demo) Hook(name string) (Hook, error) {
	if hook, ok := d.hooks[name]; ok {
		return hook, nil
	}
	return Hook{}, noSuchHook(name)
}

func noSuchHook(name string) error {
	var names []string
	for _, h := range demoHooks() {
		names = append(names, h.name)
	}
	return fmt.Errorf("the demo has no hook %q; there are %s", name, strings.Join(names, ", "))
}

// EnqueueTo queues n calls of one event to a hook, as Phorge's editor writes
// them.
func (d *Demo) EnqueueTo(ctx context.Context, name string, n int) error {
	hook, err := d.Hook(name)
	if err != nil {
		return err
	}
	e, err := d.event(ctx, hook)
	if err != nil {
		return err
	}
	return d.cfg.Phorge.EnqueueMany(ctx, e, n)
}

// Enqueue queues the first handful: an editor's call to every hook, and the
// test button's and the command line's to the healthy one. It returns how many
// requests it made.
func (d *Demo) Enqueue(ctx context.Context) (int, error) {
	made := 0
	for _, h := range demoHooks() {
		if err := d.edit(ctx, d.hooks[h.name]); err != nil {
			return made, err
		}
		made++
	}
	healthy := d.hooks[demoHooks()[0].name].PHID
	if _, err := d.cfg.Phorge.EnqueueTest(ctx, healthy, d.tasks[0], d.user); err != nil {
		return made, err
	}
	made++
	if _, err := d.cfg.Phorge.EnqueueCommandLine(ctx, Call{Hook: healthy, Object: d.tasks[0]}); err != nil {
		return made, err
	}
	return made + 1, nil
}

// Run queues an event each interval until the context ends, which is not an
// error. When the database is away it returns what the database said.
func (d *Demo) Run(ctx context.Context) error {
	tick := time.NewTicker(d.cfg.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := d.step(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// step queues the next event's calls.
func (d *Demo) step(ctx context.Context) error {
	d.mu.Lock()
	d.events++
	events := d.events
	d.mu.Unlock()
	for _, h := range demoHooks() {
		if h.every == 0 || events%h.every != 0 {
			continue
		}
		if err := d.edit(ctx, d.hooks[h.name]); err != nil {
			return err
		}
	}
	return nil
}

// edit changes a task and queues the call a Herald rule would cause.
func (d *Demo) edit(ctx context.Context, hook Hook) error {
	e, err := d.event(ctx, hook)
	if err != nil {
		return err
	}
	_, err = d.cfg.Phorge.EnqueueEditor(ctx, e)
	return err
}

// event changes a task, one to three transactions, and says what a Herald rule
// would make of it.
func (d *Demo) event(ctx context.Context, hook Hook) (Edit, error) {
	d.mu.Lock()
	events := d.events
	d.mu.Unlock()
	task := d.tasks[events%len(d.tasks)]
	transactions, err := d.cfg.Phorge.AddTransactions(ctx, d.user, task, 1+events%3)
	return Edit{Hook: hook.PHID, Object: task, Transactions: transactions, Triggers: []string{NewPHID("HRUL")}}, err
}
