package workflows_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"waybill/activities"
	"waybill/internal/devstack/stacktest"
	"waybill/internal/herald"
	"waybill/workflows"
)

func TestMain(m *testing.M) {
	stacktest.Main(m)
}

var ref = activities.Ref{ID: 7, PHID: "PHID-HWBR-seven", HookPHID: "PHID-HWBH-hook"}

// asked is one run of an activity, as the stage saw it.
type asked struct {
	name    string
	local   bool
	queue   string
	attempt int
	now     bool
	at      time.Time
	within  time.Duration
}

// stage runs one workflow in the SDK's time-skipping environment. Its answers
// are used in their order, the last one again and again.
type stage struct {
	*testsuite.TestWorkflowEnvironment
	t      *testing.T
	claims []func() (activities.ClaimResult, error)
	sends  []func() (activities.SendResult, error)
	writes []func() (activities.WriteBackResult, error)

	mu   sync.Mutex
	runs []asked
}

func newStage(t *testing.T) *stage {
	t.Helper()
	suite := testsuite.WorkflowTestSuite{}
	suite.SetLogger(quiet{})
	s := &stage{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t}
	s.SetTestTimeout(time.Minute)
	s.RegisterWorkflow(workflows.Request)
	s.RegisterWorkflow(workflows.Hook)
	for name, fake := range map[string]any{"Claim": s.claim, "Send": s.send, "WriteBack": s.writeBack} {
		s.RegisterActivityWithOptions(fake, activity.RegisterOptions{Name: name})
	}
	return s
}

// quiet is a logger for expected errors.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

func (s *stage) saw(ctx context.Context, name string, attempt int, now bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.runs {
		if r.name == name {
			n++
		}
	}
	info := activity.GetInfo(ctx)
	s.runs = append(s.runs, asked{name, info.IsLocalActivity, info.TaskQueue, attempt, now, s.Now(), info.StartToCloseTimeout})
	return n
}

func (s *stage) claim(ctx context.Context, in activities.ClaimInput) (activities.ClaimResult, error) {
	n := s.saw(ctx, "claim", in.Attempt, in.Now)
	if in.Ref != ref {
		s.t.Errorf("claim of %+v", in.Ref)
	}
	return s.claims[min(n, len(s.claims)-1)]()
}

func (s *stage) send(ctx context.Context, in activities.SendInput) (activities.SendResult, error) {
	n := s.saw(ctx, "send", in.Attempt, false)
	if in.Ref != ref || in.Version != version {
		s.t.Errorf("send of %+v", in)
	}
	return s.sends[min(n, len(s.sends)-1)]()
}

func (s *stage) writeBack(ctx context.Context, in activities.WriteBackInput) (activities.WriteBackResult, error) {
	n := s.saw(ctx, "write back", 0, false)
	if in != *owed {
		s.t.Errorf("write back of %+v", in)
	}
	return s.writes[min(n, len(s.writes)-1)]()
}

// run plays a request and returns how it ended.
func (s *stage) run(in workflows.RequestInput) (workflows.RequestResult, error) {
	s.t.Helper()
	in.Ref = ref
	s.ExecuteWorkflow(workflows.Request, in)
	if !s.IsWorkflowCompleted() {
		s.t.Fatal("the workflow did not end")
	}
	var res workflows.RequestResult
	if err := s.GetWorkflowError(); err != nil {
		return res, err
	}
	return res, s.GetWorkflowResult(&res)
}

// names lists the activities that ran: "claim", or "claim*" inside the task.
func (s *stage) names() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		name := r.name
		if r.local {
			name += "*"
		}
		out = append(out, name)
	}
	return out
}

func (s *stage) expect(want ...string) {
	s.t.Helper()
	if got := s.names(); !slices.Equal(got, want) {
		s.t.Errorf("activities: %q, want %q", got, want)
	}
}

// gap is the workflow's time between the n-th and the next activity.
func (s *stage) gap(n int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[n+1].at.Sub(s.runs[n].at)
}

// The answers of activities.

const (
	version = int64(1700000001)
	queue   = "waybill/owner"
	backoff = time.Minute
)

var (
	sentRow   = &activities.RowEnd{Status: herald.StatusSent, Result: herald.ResultOkay, ErrorType: "http", ErrorCode: "200"}
	failedRow = &activities.RowEnd{Status: herald.StatusFailed, Result: herald.ResultFail, ErrorType: "http", ErrorCode: "500"}
	queuedRow = &activities.RowEnd{Status: herald.StatusQueued, Result: herald.ResultFail, ErrorType: "timeout", ErrorCode: "28"}
	owed      = &activities.WriteBackInput{Ref: ref, Version: version, Completed: 1700000002}

	won  = activities.ClaimResult{State: activities.Won, Version: version, Queue: queue}
	fast = activities.ClaimResult{State: activities.Won, Version: version, Queue: queue, Fast: true}

	delivered = activities.SendResult{State: activities.Recorded, Row: sentRow}
	failed    = activities.SendResult{State: activities.Recorded, Row: failedRow}
	again     = activities.SendResult{State: activities.Recorded, Row: queuedRow, Retry: true, Wait: backoff}
	crowded   = activities.SendResult{State: activities.Recorded, Row: queuedRow, Retry: true, Wait: backoff, Crowded: true}
	unwritten = activities.SendResult{State: activities.Unwritten, Row: sentRow, Unwritten: owed}
)

func answer[T any](v T) func() (T, error)           { return func() (T, error) { return v, nil } }
func failure[T any](err error) func() (T, error)    { return func() (v T, _ error) { return v, err } }
func during[T any](v T, f func()) func() (T, error) { return func() (T, error) { f(); return v, nil } }

func claims(c ...activities.ClaimResult) (out []func() (activities.ClaimResult, error)) {
	for _, v := range c {
		out = append(out, answer(v))
	}
	return out
}

func sends(c ...activities.SendResult) (out []func() (activities.SendResult, error)) {
	for _, v := range c {
		out = append(out, answer(v))
	}
	return out
}
