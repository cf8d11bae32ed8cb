package worker

import (
	"net/netip"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"waybill/activities"
	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
	"waybill/internal/egress"
	"waybill/internal/heralddb"
	"waybill/workflows"
)

// plant is a process's worker with everything real around it, in a Temporal
// namespace of its own.
type plant struct {
	*process
	phorge   *devstack.Phorge
	receiver *devstack.Receiver
	temporal client.Client
	hook     devstack.Hook
}

func newPlant(t *testing.T) *plant {
	t.Helper()
	p := &plant{phorge: stacktest.Phorge(t, "")}
	var err error
	if p.receiver, err = devstack.StartReceiver(t.Context(), devstack.ReceiverConfig{Clock: time.Now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.receiver.Close() })
	p.hook, err = p.phorge.CreateHook(t.Context(), devstack.Hook{Name: "one", URI: p.receiver.URL(devstack.EndpointHealthy)})
	if err != nil {
		t.Fatal(err)
	}
	p.receiver.Trust(devstack.EndpointHealthy, p.hook.Key)
	p.temporal, _ = bare(t)
	s := newSite(t, p.hook.PHID)
	s.namespace = p.phorge.Namespace
	p.process = s.start(stacktest.Name("one"), nil)
	p.owns(1)
	p.work(t)
	return p
}

// work starts the workers, which end with the test.
func (p *plant) work(t *testing.T) {
	t.Helper()
	rules := activities.Rules{
		Timeout: 10 * time.Second, Allowance: 10 * time.Second, Lease: lease, Backoff: 3 * time.Second, BreakerWindow: time.Minute,
	}
	rows, err := heralddb.Open(heralddb.Config{
		DSN: stacktest.MariaDB(t).DSN(p.phorge.Database("herald")), Namespace: p.phorge.Namespace,
		Lease: rules.Lease, Backoff: rules.Backoff, BreakerThreshold: 10, Clock: time.Now, Unreadable: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rows.Close() })
	_, counts := meter(t)
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	workers := New(Options{
		Client: p.temporal, Shared: shared, Queue: p.cfg.Queue, MaxInFlight: 2, MaxSlow: 2, Stop: time.Minute,
	}, activities.NewHerald(activities.Config{
		Rows: rows, Objects: rows, Pauses: p.site.ledger, Gate: p.Ownership,
		Poster: Poster{Egress: egress.New(egress.Config{Policy: egress.NewPolicy(nil, loopback), Now: time.Now}), Meter: counts.Herald},
		Meter:  counts, Witness: Witness{
			NewSilence(SilenceConfig{Rows: rows, Holds: p.site.ledger, Log: zap.NewNop(), Clock: p.clock.now}),
			NewOverwritten(OverwrittenConfig{Rows: rows, Count: func() {}, Log: zap.NewNop(), Clock: p.clock.now}),
		}, Log: zap.NewNop(), Clock: p.clock.now, Rules: rules,
	}))
	if err := workers.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(workers.Stop)
}

// shared is the task queue of the plant's installation.
const shared = "waybill-test"

// enqueue makes a row as an editor does, and runs its workflow.
func (p *plant) enqueue(t *testing.T) client.WorkflowRun {
	t.Helper()
	author, err := p.phorge.CreateUser(t.Context(), stacktest.Name("ada"))
	if err != nil {
		t.Fatal(err)
	}
	task, err := p.phorge.CreateTask(t.Context(), author, "a task")
	if err != nil {
		t.Fatal(err)
	}
	phid, err := p.phorge.EnqueueEditor(t.Context(), devstack.Edit{Hook: p.hook.PHID, Object: task})
	if err != nil {
		t.Fatal(err)
	}
	row, err := p.phorge.Row(t.Context(), phid)
	if err != nil {
		t.Fatal(err)
	}
	run, err := p.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: workflows.RequestID(phid), TaskQueue: shared, EnableEagerStart: true,
	}, workflows.Request, workflows.RequestInput{
		Ref: activities.Ref{ID: uint64(row.ID), PHID: phid, HookPHID: p.hook.PHID},
	})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// Everything is registered under the names that workflows use, on the queues
// that they use: an unknown receiver first, then a fast one, then a pause.
func TestWorkersRunEverything(t *testing.T) {
	p := newPlant(t)
	for n := range 3 {
		var res workflows.RequestResult
		if err := p.enqueue(t).Get(t.Context(), &res); err != nil || res.Outcome != workflows.Delivered {
			t.Fatalf("row %d: %+v, %v", n, res, err)
		}
	}
	if got := p.receiver.Counts(devstack.EndpointHealthy); got.Calls != 3 || got.Verified != 3 {
		t.Errorf("the receiver has counted %+v", got)
	}
	id := workflows.HookID(p.hook.PHID)
	_, err := p.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: shared},
		workflows.Hook, workflows.HookInput{PHID: p.hook.PHID})
	if err != nil {
		t.Fatal(err)
	}
	paused := func() bool {
		pause, err := p.site.ledger.Paused(t.Context(), p.hook.PHID)
		return err == nil && pause != nil
	}
	p.signal(t, id, workflows.SignalPause, "upgrade")
	eventually(t, "paused", paused)
	var res workflows.RequestResult
	run := p.enqueue(t)
	if err := run.Get(t.Context(), &res); err != nil || res.Outcome != workflows.Deferred || res.State != activities.Paused {
		t.Errorf("while paused: %+v, %v", res, err)
	}
	p.signal(t, id, workflows.SignalResume, nil)
	eventually(t, "resumed", func() bool { return !paused() })
	if got := p.receiver.Counts(devstack.EndpointHealthy); got.Calls != 3 {
		t.Errorf("%d calls, one of them during the pause", got.Calls)
	}
}

func (p *plant) signal(t *testing.T, id, name string, arg any) {
	t.Helper()
	if err := p.temporal.SignalWorkflow(t.Context(), id, "", name, arg); err != nil {
		t.Fatal(err)
	}
}

// A row whose hook another process owns is claimed and sent there.
func TestWorkersSendWhereTheOwnerIs(t *testing.T) {
	p := newPlant(t)
	// A second process, which owns nothing, shares the queue for workflow tasks.
	owner := *p
	other := *p
	other.process = p.site.start(stacktest.Name("two"), nil)
	eventually(t, "the second process is up", func() bool { return other.Problem() == "" })
	other.work(t)
	for n := range 6 {
		var res workflows.RequestResult
		if err := owner.enqueue(t).Get(t.Context(), &res); err != nil || res.Outcome != workflows.Delivered || res.Attempts != 1 {
			t.Fatalf("row %d: %+v, %v", n, res, err)
		}
	}
	if got := p.receiver.Counts(devstack.EndpointHealthy); got.Calls != 6 {
		t.Errorf("%d calls for 6 rows", got.Calls)
	}
}
