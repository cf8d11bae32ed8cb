package workflows_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"waybill/activities"
	"waybill/internal/devstack/stacktest"
	"waybill/internal/herald"
	"waybill/workflows"
)

// recorder stands in histories where a machine's name would: as the identity,
// and in the names of task queues.
const recorder = "recorder"

// shared is the installation's task queue in histories.
const shared = "waybill"

// shape is one way for a workflow to go. Its answers are used in their order,
// the last one again and again.
type shape struct {
	claims []activities.ClaimResult
	sends  []activities.SendResult
	// lostWrites is how many late writes fail before one works.
	lostWrites int
	hook       bool
	// play is what an operator does meanwhile.
	play func(*recording)
	// cancelled is the expected end, instead of a completed workflow.
	cancelled bool
}

// soon is a rest that a recording can wait for, hours one that it must not.
const (
	soon  = time.Second
	hours = 5 * time.Hour
)

// shapes are all ways that a stored history must exist for.
func shapes() map[string]shape {
	own := func(c activities.ClaimResult) activities.ClaimResult { c.Queue = recorder; return c }
	state := func(s activities.ClaimState) activities.ClaimResult {
		return activities.ClaimResult{State: s, Wait: soon, Reason: "A sentence.", Queue: recorder}
	}
	later := func(d time.Duration) activities.SendResult { r := again; r.Wait = d; return r }
	broken := activities.ClaimResult{State: activities.Misconfigured,
		Row: &activities.RowEnd{Status: herald.StatusFailed, Result: herald.ResultNone, ErrorType: "hook", ErrorCode: "uri"}}
	absent := own(won)
	absent.Queue = "nobody"
	return map[string]shape{
		"delivered-inside":     {claims: []activities.ClaimResult{own(fast)}, sends: []activities.SendResult{delivered}},
		"delivered":            {claims: []activities.ClaimResult{own(won)}, sends: []activities.SendResult{delivered}},
		"failed":               {claims: []activities.ClaimResult{own(won)}, sends: []activities.SendResult{failed}},
		"retried":              {claims: []activities.ClaimResult{own(fast)}, sends: []activities.SendResult{later(soon), delivered}},
		"misconfigured":        {claims: []activities.ClaimResult{broken}},
		"unprocessable":        {claims: []activities.ClaimResult{state(activities.Untouched)}},
		"collected":            {claims: []activities.ClaimResult{state(activities.Collected)}},
		"deferred":             {claims: []activities.ClaimResult{state(activities.Busy)}},
		"paused":               {claims: []activities.ClaimResult{own(won), state(activities.Paused)}, sends: []activities.SendResult{later(soon)}},
		"leased":               {claims: []activities.ClaimResult{state(activities.Leased), own(won)}, sends: []activities.SendResult{delivered}},
		"elsewhere":            {claims: []activities.ClaimResult{state(activities.Elsewhere), own(fast)}, sends: []activities.SendResult{delivered}},
		"written-back":         {claims: []activities.ClaimResult{own(won)}, sends: []activities.SendResult{unwritten}, lostWrites: 1},
		"written-back-inside":  {claims: []activities.ClaimResult{own(fast)}, sends: []activities.SendResult{unwritten}},
		"overtaken":            {claims: []activities.ClaimResult{own(won)}, sends: []activities.SendResult{{State: activities.Overtaken}}},
		"send-not-started":     {claims: []activities.ClaimResult{absent, own(won)}, sends: []activities.SendResult{delivered}},
		"claim-failed":         {claims: []activities.ClaimResult{{}}},
		"retry-now":            {claims: []activities.ClaimResult{own(won)}, sends: []activities.SendResult{later(hours), delivered}, play: askForRetry},
		"crowded":              {claims: []activities.ClaimResult{own(won)}, sends: []activities.SendResult{crowded}},
		"retry-now-again":      {claims: []activities.ClaimResult{own(won)}, sends: []activities.SendResult{later(hours), later(soon), delivered}, play: askTwice},
		"cancelled":            {claims: []activities.ClaimResult{own(won)}, sends: []activities.SendResult{later(hours)}, play: cancel, cancelled: true},
		"hook-pause-resume":    {hook: true, play: pauseAndResume},
		"hook-retired":         {hook: true, play: retire},
		"hook-paused-by-bytes": {hook: true, play: pauseWithBytes},
	}
}

// recording is one run of a shape on a real server.
type recording struct {
	shape
	t      *testing.T
	client client.Client
	id     string

	mu                    sync.Mutex
	claimed, sent, writes int
	// asked, where it is set, holds the second send until it is closed.
	asked chan struct{}
}

// TestRecord writes a history of every shape; only with -update, because each
// recording takes its rests in real time.
func TestRecord(t *testing.T) {
	if !*update {
		t.Skip("records with -update only")
	}
	if err := os.MkdirAll(historyDir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, s := range shapes() {
		t.Run(name, func(t *testing.T) { record(t, name, s) })
	}
}

func record(t *testing.T, name string, s shape) {
	srv := stacktest.Temporal(t)
	c, err := client.Dial(client.Options{HostPort: srv.Addr(), Namespace: srv.Namespace(), Identity: recorder, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := &recording{shape: s, t: t, client: c, id: name, asked: make(chan struct{})}
	defer r.work(shared)()
	defer r.work(recorder)()
	run := r.start()
	if s.play != nil {
		s.play(r)
	}
	var canceled *temporal.CanceledError
	if err := run.Get(t.Context(), nil); (err != nil) != s.cancelled || (s.cancelled && !errors.As(err, &canceled)) {
		t.Fatalf("ended with %v", err)
	}
	r.store(run.GetRunID())
}

// work runs a worker on a queue and returns what stops it.
func (r *recording) work(queue string) func() {
	w := worker.New(r.client, queue, worker.Options{Identity: recorder})
	w.RegisterWorkflowWithOptions(workflows.Request, workflow.RegisterOptions{Name: "Request"})
	w.RegisterWorkflowWithOptions(workflows.Hook, workflow.RegisterOptions{Name: "Hook"})
	for name, fake := range map[string]any{
		"Claim": r.Claim, "Send": r.Send, "WriteBack": r.WriteBack,
		"Pause":  func(context.Context, herald.Pause) error { return nil },
		"Resume": func(context.Context, string) error { return nil },
		"Paused": func(context.Context, string) (*herald.Pause, error) { return nil, nil },
	} {
		w.RegisterActivityWithOptions(fake, activity.RegisterOptions{Name: name})
	}
	if err := w.Start(); err != nil {
		r.t.Fatal(err)
	}
	return w.Stop
}

func (r *recording) start() client.WorkflowRun {
	o := client.StartWorkflowOptions{ID: r.id, TaskQueue: shared}
	var run client.WorkflowRun
	var err error
	if r.hook {
		run, err = r.client.ExecuteWorkflow(r.t.Context(), o, workflows.Hook, workflows.HookInput{PHID: hookPHID, Attributes: true})
	} else {
		run, err = r.client.ExecuteWorkflow(r.t.Context(), o, workflows.Request, workflows.RequestInput{Ref: ref, Attributes: true})
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

func (r *recording) Claim(context.Context, activities.ClaimInput) (activities.ClaimResult, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.claims[min(r.claimed, len(r.claims)-1)]
	r.claimed++
	if c.State == "" {
		return c, errors.New("the database is away")
	}
	return c, nil
}

func (r *recording) Send(context.Context, activities.SendInput) (activities.SendResult, error) {
	r.mu.Lock()
	n := r.sent
	r.sent++
	r.mu.Unlock()
	if n == 1 && r.id == "retry-now-again" {
		<-r.asked
	}
	return r.sends[min(n, len(r.sends)-1)], nil
}

func (r *recording) WriteBack(context.Context, activities.WriteBackInput) (activities.WriteBackResult, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	if r.writes <= r.lostWrites {
		return activities.WriteBackResult{}, errors.New("the database is away")
	}
	return activities.WriteBackResult{Outcome: herald.Written}, nil
}

// history reads all events so far.
func (r *recording) history(run string) *historypb.History {
	r.t.Helper()
	all := r.client.GetWorkflowHistory(r.t.Context(), r.id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	h := &historypb.History{}
	for all.HasNext() {
		e, err := all.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		h.Events = append(h.Events, e)
	}
	return h
}

// until waits for so many events of a kind.
func (r *recording) until(n int, kind enumspb.EventType) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		seen := 0
		for _, e := range r.history("").GetEvents() {
			if e.GetEventType() == kind {
				seen++
			}
		}
		if seen >= n {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("no %v in time", kind)
		}
	}
}

// store writes the history as a file, without the machine's name.
func (r *recording) store(run string) {
	r.t.Helper()
	h := r.history(run)
	for _, e := range h.GetEvents() {
		if q := e.GetWorkflowTaskScheduledEventAttributes().GetTaskQueue(); q.GetKind() == enumspb.TASK_QUEUE_KIND_STICKY {
			q.Name = recorder + ":sticky"
		}
	}
	data, err := protojson.MarshalOptions{Multiline: true, Indent: " "}.Marshal(h)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(historyDir, r.id+".json"), append(data, '\n'), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *recording) signal(name string, arg any) {
	r.t.Helper()
	if err := r.client.SignalWorkflow(r.t.Context(), r.id, "", name, arg); err != nil {
		r.t.Fatal(err)
	}
}

// What operators do.

func askForRetry(r *recording) {
	r.until(1, enumspb.EVENT_TYPE_TIMER_STARTED)
	r.signal(workflows.SignalRetryNow, nil)
}

// askTwice asks again while the retry that it asked for is being sent.
func askTwice(r *recording) {
	askForRetry(r)
	r.until(2, enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
	r.signal(workflows.SignalRetryNow, nil)
	close(r.asked)
}

func cancel(r *recording) {
	r.until(1, enumspb.EVENT_TYPE_TIMER_STARTED)
	if err := r.client.CancelWorkflow(r.t.Context(), r.id, ""); err != nil {
		r.t.Fatal(err)
	}
}

func pauseAndResume(r *recording) {
	r.until(1, enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
	r.signal(workflows.SignalPause, map[string]string{"by": "ada", "reason": "upgrade"})
	r.until(2, enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
	r.signal(workflows.SignalPause, "again")
	r.signal(workflows.SignalResume, nil)
	r.until(3, enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
	retire(r)
}

func pauseWithBytes(r *recording) {
	r.signal(workflows.SignalPause, []byte{0xff, '{'})
	r.until(2, enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
	retire(r)
}

func retire(r *recording) { r.signal(workflows.SignalRetire, nil) }
