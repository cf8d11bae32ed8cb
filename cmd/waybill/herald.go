package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"waybill/activities"
	"waybill/internal/config"
	"waybill/internal/egress"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/internal/ledger"
	"waybill/internal/telemetry"
	"waybill/starter"
	"waybill/worker"
)

// bringUpEvery spaces the tries to reach what is not there yet.
const bringUpEvery = time.Second

// stopMargin is what an orderly stop of a worker may take beyond an exchange
// and its write.
const stopMargin = 5 * time.Second

// roles are the parts of the lane that a process plays.
type roles struct{ worker, starter bool }

// heraldLane is the Herald lane of one process: its connections, and what it
// has got running so far.
type heraldLane struct {
	job
	roles  roles
	lease  time.Duration
	rows   *heralddb.DB
	ledger *ledger.Ledger
	meter  *telemetry.Herald
	sdk    client.MetricsHandler
	health *health
	// tracing is nil where it is switched off.
	tracing *telemetry.Tracing

	queue        string // the installation's task queue
	openBreakers func() int
}

// newHeraldLane opens the pools; nothing is connected yet.
func newHeraldLane(j job, r roles, t *telemetry.Provider, h *health) (*heraldLane, error) {
	lease, _ := j.config.Lease()
	l := &heraldLane{job: j, roles: r, lease: lease, health: h, sdk: t.SDK()}
	var err error
	if l.meter, err = telemetry.NewHerald(t.Meter("waybill/herald")); err != nil {
		return nil, err
	}
	c := j.config.Herald
	l.rows, err = heralddb.Open(heralddb.Config{
		DSN: c.DSN.Driver().FormatDSN(), Namespace: c.Namespace, Lease: lease, Backoff: c.RetryBackoff,
		BreakerThreshold: c.BreakerThreshold, Clock: j.now, MaxConns: c.MaxInFlight + 8,
		Unreadable: func(table string) {
			j.logger.Info("table cannot be read: existence and order are taken from the row instead", zap.String("table", table))
		},
	})
	if err != nil {
		return nil, err
	}
	l.ledger, err = ledger.Open(j.config.Ledger.Driver().FormatDSN())
	return l, err
}

// run brings the lane up, each thing as soon as it can be had, and ends it in
// order when ctx does.
func (l *heraldLane) run(ctx context.Context) error {
	defer func() { _ = l.rows.Close(); _ = l.ledger.Close() }()
	if !l.await(ctx, "Waybill's own database is not ready", func() error { return migrate(ctx, l.ledger) }) ||
		!l.await(ctx, "Phorge's database is not ready", func() error { return l.rows.Ping(ctx) }) {
		return nil
	}
	temporal, attributes, ok := l.connect(ctx)
	if !ok {
		return nil
	}
	defer temporal.Close()
	l.health.watch(l.checks(temporal)...)
	if l.roles == (roles{}) {
		l.health.solved(starting)
		<-ctx.Done()
		return nil
	}
	if !l.await(ctx, "The installation's name cannot be read", func() error { return l.name(ctx, temporal) }) {
		return nil
	}
	if !l.roles.worker {
		return l.feedElsewhere(ctx, temporal, attributes)
	}
	return l.work(ctx, temporal, attributes)
}

// await tries until it works or ctx ends, saying once what is missing.
func (l *heraldLane) await(ctx context.Context, problem string, try func() error) bool {
	told := ""
	for {
		err := try()
		if err == nil {
			l.health.solved(problem)
			return true
		}
		l.health.trouble(problem)
		if ctx.Err() == nil && told != err.Error() {
			told = err.Error()
			l.logger.Warn(problem+", trying again", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(bringUpEvery):
		}
	}
}

func migrate(ctx context.Context, db *ledger.Ledger) error {
	_, err := db.Migrate(ctx)
	return err
}

// connect waits for Temporal and registers the search attributes.
func (l *heraldLane) connect(ctx context.Context) (c client.Client, attributes, ok bool) {
	ok = l.await(ctx, "Temporal is not ready", func() (err error) {
		options, err := l.clientOptions()
		if err != nil {
			return err
		}
		c, err = worker.Dial(ctx, l.config.Temporal, options)
		return err
	})
	if !ok {
		return nil, false, false
	}
	if err := worker.Attributes(ctx, c, l.config.Temporal.Namespace); err != nil {
		l.logger.Warn("search attributes cannot be used, running without them", zap.Error(err))
		return c, false, true
	}
	return c, true, true
}

// name finds the installation's task queue.
func (l *heraldLane) name(ctx context.Context, temporal client.Client) error {
	hooks, err := l.rows.HookPHIDs(ctx)
	if err != nil {
		return err
	}
	l.queue, err = worker.TaskQueue(ctx, temporal, l.ledger, hooks)
	return err
}

func (l *heraldLane) clientOptions() (client.Options, error) {
	interceptors, err := l.tracing.Interceptors()
	return client.Options{Logger: telemetry.TemporalLogger(l.logger), MetricsHandler: l.sdk, Interceptors: interceptors}, err
}

// work owns hooks and sends; with the starter's role it also feeds them.
func (l *heraldLane) work(ctx context.Context, temporal client.Client, attributes bool) error {
	instance := instanceName()
	queue := "waybill/" + instance
	own := worker.NewOwnership(l.ownership(instance, queue))
	l.health.watch(locks(own))
	seen := l.witness()
	acts, err := l.activities(own, seen)
	if err != nil {
		return err
	}
	l.openBreakers = acts.OpenBreakers
	c := l.config.Herald
	workers := worker.New(worker.Options{
		Client: temporal, Shared: l.queue, Queue: queue, MaxInFlight: c.MaxInFlight, MaxSlow: c.MaxSlow,
		Stop: c.DeliveryTimeout + c.WriteAllowance + stopMargin,
	}, acts)
	if !l.await(ctx, "Temporal does not let the workers start", workers.Start) {
		return nil
	}
	defer workers.Stop()
	// Nothing is owned, and so nothing is sent, before this has been looked at.
	if !l.await(ctx, "Whether Phorge's site is silent cannot be seen", func() error { return seen.Look(ctx) }) {
		return nil
	}
	go seen.Silence.Run(ctx)
	go seen.Overwritten.Run(ctx)
	stop, err := l.observe(own)
	if err != nil {
		return err
	}
	defer stop()
	l.health.solved(starting)
	l.logger.Info("herald lane running", zap.String("instance", instance), zap.String("task_queue", l.queue), zap.Duration("lease", l.lease),
		zap.String("takeover", string(c.Takeover)))
	owned := make(chan struct{})
	go func() { defer close(owned); own.Run(ctx) }()
	if l.roles.starter {
		there := starter.NewElsewhere(l.ledger.UnfedHooks, c.MaxInFlight+c.MaxSlow)
		go there.Run(ctx)
		feeds := starter.New(l.starter(starter.NewBoth(own, there), temporal, attributes))
		own.OnEnded(feeds.Ended)
		feeds.Run(ctx)
	}
	<-owned
	l.logger.Info("herald lane stopped")
	return nil
}

// feedElsewhere feeds hooks that workers in other processes own.
func (l *heraldLane) feedElsewhere(ctx context.Context, temporal client.Client, attributes bool) error {
	c := l.config.Herald
	there := starter.NewElsewhere(l.ledger.UnfedHooks, c.MaxInFlight+c.MaxSlow)
	go there.Run(ctx)
	l.health.solved(starting)
	l.logger.Info("starter running")
	starter.New(l.starter(there, temporal, attributes)).Run(ctx)
	return nil
}

// feeding is the ownership that a starter needs.
type feeding interface {
	Ready(hookPHID string) (time.Duration, bool)
	Reserve(ctx context.Context, hookPHID string) (func(), error)
	Wake()
	// Watched says whether attempts to the hook end in other processes.
	Watched(hookPHID string) bool
}

func (l *heraldLane) starter(own feeding, temporal client.Client, attributes bool) starter.Config {
	return starter.Config{
		Queue: l.rows, Owner: own, Pauses: l.ledger, Hooks: l.rows.HookPHIDs, Temporal: temporal, Attributes: attributes,
		Register: func(ctx context.Context) error {
			return worker.Attributes(ctx, temporal, l.config.Temporal.Namespace)
		},
		Watch: own.Watched, TaskQueue: l.queue, Poll: l.config.Herald.PollInterval, AttemptWithin: l.lease,
		Tracer: l.tracing.Tracer("waybill/herald"), Log: l.logger, Clock: l.now,
	}
}

func (l *heraldLane) ownership(instance, queue string) worker.OwnershipConfig {
	c := l.config.Herald
	hold := worker.HoldAfter
	if c.Takeover == config.TakeoverExternal {
		hold = 0
	}
	return worker.OwnershipConfig{
		LockDSN: c.LockDSN().Driver().FormatDSN(), SameServer: c.LocksBesideRows(), Namespace: c.Namespace,
		Instance: instance, Queue: queue, Feeds: l.roles.starter, Lease: l.lease, Hold: hold,
		MaxInFlight: c.MaxInFlight, MaxSlow: c.MaxSlow,
		Hooks: l.ownable, Records: l.ledger, Sessions: l.ledger, Meter: l.meter, Log: l.logger, Clock: l.now,
	}
}

// outbound says which addresses hooks may have.
func outbound(c config.Herald) *egress.Policy {
	deny := c.Deny
	if deny == nil {
		deny = egress.DefaultDeny()
	}
	return egress.NewPolicy(deny, c.Allow)
}

func (l *heraldLane) activities(own *worker.Ownership, seen worker.Witness) (*activities.Herald, error) {
	c := l.config.Herald
	out := egress.Config{Policy: outbound(c), UserAgent: "waybill/" + l.version, Now: l.now}
	var err error
	if out.RootCAs, err = c.RootCAs(); err != nil {
		return nil, err
	}
	traced := worker.Traced{Tracer: l.tracing.Tracer("waybill/herald")}
	return activities.NewHerald(activities.Config{
		Rows: traced.Rows(l.rows), Objects: l.rows, Pauses: l.ledger, Gate: own,
		Poster: traced.Poster(worker.Poster{Egress: egress.New(out), Meter: l.meter}), Meter: &worker.Meter{Herald: l.meter},
		Witness: seen, Log: l.logger, Clock: l.now,
		Rules: activities.Rules{
			Timeout: c.DeliveryTimeout, Allowance: c.WriteAllowance, Lease: l.lease,
			Backoff: c.RetryBackoff, BreakerWindow: c.BreakerWindow,
		},
	}), nil
}

// ownable lists the hooks that workers may own: all but those that are released
// to Phorge, or that Waybill could not serve: its locks would keep Phorge from
// delivering what Waybill does not. A hook that drops out of it is let go in order.
func (l *heraldLane) ownable(ctx context.Context) ([]string, error) {
	all, err := l.rows.HookPHIDs(ctx)
	if err != nil {
		return nil, err
	}
	released, err := l.ledger.ReleasedHooks(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(hook string) bool { return released(hook) || !herald.Speakable(hook) }), nil
}

// witness watches what shows only across rows, or later.
func (l *heraldLane) witness() worker.Witness {
	return worker.Witness{
		Silence: worker.NewSilence(worker.SilenceConfig{Rows: l.rows, Holds: l.ledger, Log: l.logger, Clock: l.now}),
		Overwritten: worker.NewOverwritten(worker.OverwrittenConfig{
			Rows: l.rows, Count: func() { l.meter.Overwritten(context.Background()) }, Log: l.logger, Clock: l.now,
		}),
	}
}

// instanceName names this run of the process, for people and for task queues.
func instanceName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), hex.EncodeToString(random[:]))
}
