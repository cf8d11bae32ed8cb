package workflows_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/workflows"
)

// decode reads the input of a continued run.
func (s *stage) decode(next *workflow.ContinueAsNewError, into any) error {
	return converter.GetDefaultDataConverter().FromPayloads(next.Input, into)
}

// spy keeps the values that WaybillState takes.
type spy struct {
	interceptor.WorkerInterceptorBase
	interceptor.WorkflowInboundInterceptorBase
	interceptor.WorkflowOutboundInterceptorBase
	states []string
}

func (s *spy) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	s.WorkflowInboundInterceptorBase.Next = next
	return s
}

func (s *spy) Init(out interceptor.WorkflowOutboundInterceptor) error {
	s.WorkflowOutboundInterceptorBase.Next = out
	return s.WorkflowInboundInterceptorBase.Next.Init(&outSpy{s.WorkflowOutboundInterceptorBase, s})
}

type outSpy struct {
	interceptor.WorkflowOutboundInterceptorBase
	to *spy
}

func (o *outSpy) UpsertTypedSearchAttributes(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) error {
	set := temporal.NewSearchAttributes(updates...)
	if v, ok := set.GetKeyword(workflows.AttributeState); ok && set.Size() == 1 {
		o.to.states = append(o.to.states, v)
	} else {
		o.to.states = append(o.to.states, "something else")
	}
	return o.WorkflowOutboundInterceptorBase.UpsertTypedSearchAttributes(ctx, updates...)
}

// watched makes the stage report what search attributes are set to.
func (s *stage) watched() *spy {
	w := &spy{}
	s.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{w}})
	return w
}

func TestStateAttribute(t *testing.T) {
	busy := activities.ClaimResult{State: activities.Busy}
	for _, c := range []struct {
		name   string
		claims []activities.ClaimResult
		sends  []activities.SendResult
		want   []string
	}{
		{"nothing is paid for a delivery at once", []activities.ClaimResult{fast}, []activities.SendResult{delivered}, nil},
		{"once per change", []activities.ClaimResult{won, busy, busy, busy, won}, []activities.SendResult{again, delivered},
			[]string{"retrying", "waiting", "delivered"}},
		{"retries", []activities.ClaimResult{won}, []activities.SendResult{again, again, again, failed}, []string{"retrying", "failed"}},
		{"ends without a send", []activities.ClaimResult{{State: activities.Collected}}, nil, []string{"collected"}},
	} {
		for _, on := range []bool{true, false} {
			s := newStage(t)
			seen := s.watched()
			s.claims, s.sends = claims(c.claims...), sends(c.sends...)
			if _, err := s.run(workflows.RequestInput{Attributes: on}); err != nil {
				t.Fatal(err)
			}
			want := c.want
			if !on {
				want = nil
			}
			if !slices.Equal(seen.states, want) {
				t.Errorf("%s, attributes %v: %q, want %q", c.name, on, seen.states, want)
			}
		}
	}
}

// The texts that people read while a request waits.
func TestDetailsOfARest(t *testing.T) {
	row := func(kind, code string) activities.SendResult {
		return activities.SendResult{State: activities.Recorded, Retry: true, Wait: backoff, Reason: "A sentence.",
			Row: &activities.RowEnd{Status: herald.StatusQueued, Result: herald.ResultFail, ErrorType: kind, ErrorCode: code}}
	}
	for _, c := range []struct {
		sent activities.SendResult
		want []string
	}{
		{row("http", "500"), []string{"**retrying** after 1 attempt.", "A sentence.", "`queued` / `fail`, HTTP status 500"}},
		{row("http", "7"), []string{"no connection (curl 7)"}},
		{row("timeout", "28"), []string{"no complete answer in time (curl 28)"}},
		{row("hook", "uri"), []string{"the hook's address is not one that may be called (uri)"}},
		{row("odd", "7"), []string{"`queued` / `fail`, odd 7"}},
		{activities.SendResult{State: activities.Unknown, Wait: backoff, Reason: "Cut off."}, []string{"**waiting** after 1", "Cut off."}},
	} {
		s := newStage(t)
		s.claims, s.sends = claims(won), sends(c.sent, delivered)
		begun := s.Now()
		var details string
		s.RegisterDelayedCallback(func() { details = s.details() }, time.Second)
		if _, err := s.run(workflows.RequestInput{}); err != nil {
			t.Fatal(err)
		}
		next := "Next attempt not before " + begun.Add(backoff).UTC().Format(time.RFC3339)
		for _, want := range append(c.want, next, "Signal `retry-now`") {
			if !strings.Contains(details, want) {
				t.Errorf("%q lacks %q", details, want)
			}
		}
	}
}

// Temporal lists every end as completed. Where nothing was delivered the result
// and the page say so, and what becomes of the row.
func TestEndsWithoutADeliveryAreExplained(t *testing.T) {
	for _, c := range []struct {
		state activities.ClaimState
		end   workflows.Outcome
		want  string
	}{
		{activities.Paused, workflows.Deferred, "A reason. Not sent this time: the row waits in Phorge's table"},
		{activities.BreakerOpen, workflows.Deferred, "A reason. Not sent this time: the row waits in Phorge's table"},
		{activities.Untouched, workflows.Unprocessable, "A reason. Not sent: the row cannot be processed"},
		{activities.Collected, workflows.Gone, "A reason"},
	} {
		s := newStage(t)
		s.claims = claims(activities.ClaimResult{State: c.state, Reason: "A reason"})
		res, err := s.run(workflows.RequestInput{})
		if err != nil || res.Outcome != c.end || !strings.HasPrefix(res.Reason, c.want) {
			t.Errorf("%s: %+v, %v", c.state, res, err)
		}
		if got := s.details(); !strings.HasPrefix(got, "**"+string(c.end)+"** without an attempt\n\n"+c.want) {
			t.Errorf("%s: details %q", c.state, got)
		}
	}
}

// Every code that egress writes has words, and keeps its number.
func TestErrorsAreSaidInWords(t *testing.T) {
	for code, want := range map[[2]string]string{
		{"http", "503"}: "HTTP status 503", {"http", "60"}: "the certificate is not trusted (curl 60)",
		{"http", "99"}: "no usable answer (curl 99)", {"timeout", "28"}: "no complete answer in time (curl 28)",
		{"hook", "disabled"}: "the hook is disabled in Phorge (disabled)", {"hook", "new"}: "the hook's own settings (new)",
		{"odd", "x"}: "odd x",
	} {
		if got := workflows.DescribeError(code[0], code[1]); got != want {
			t.Errorf("%v: %q, want %q", code, got, want)
		}
	}
	for _, code := range []int{
		herald.CurlNotHTTP, herald.CurlUnresolved, herald.CurlRefused, herald.CurlTruncated, herald.CurlTimeout,
		herald.CurlTLS, herald.CurlClosed, herald.CurlReset, herald.CurlCertificate,
	} {
		if got := workflows.DescribeError("http", strconv.Itoa(code)); strings.HasPrefix(got, "no usable answer") {
			t.Errorf("curl %d has no words", code)
		}
	}
}

// During a POST and a late write the page says so.
func TestDetailsOfAnAttempt(t *testing.T) {
	s := newStage(t)
	var sending, writing string
	s.claims = claims(won)
	s.sends = []func() (activities.SendResult, error){func() (activities.SendResult, error) {
		s.ask(&sending)
		return unwritten, nil
	}}
	s.writes = []func() (activities.WriteBackResult, error){func() (activities.WriteBackResult, error) {
		s.ask(&writing)
		return activities.WriteBackResult{Outcome: herald.Written}, nil
	}}
	if _, err := s.run(workflows.RequestInput{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(sending, "**sending**, attempt 1 since") {
		t.Errorf("while sending: %q", sending)
	}
	if !strings.Contains(writing, "**writing back** attempt 1") || !strings.Contains(writing, "not sent again") {
		t.Errorf("while writing: %q", writing)
	}
	if got := s.details(); got != "" && !strings.Contains(got, "**writing back**") {
		t.Errorf("a delivery at once has nothing more to tell, got %q", got)
	}
}

// ask reads the details from within an activity, in the workflow's own loop.
func (s *stage) ask(into *string) {
	done := make(chan struct{})
	s.RegisterDelayedCallback(func() { *into = s.details(); close(done) }, 0)
	<-done
}

// A rest is named in the timeline by what it follows, in the recorded history
// as on a page.
func TestRestsAreNamedByWhatTheyFollow(t *testing.T) {
	file, err := os.Open(filepath.Join(historyDir, "retried.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	history, err := client.HistoryFromJSON(file, client.HistoryJSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range history.GetEvents() {
		if e.GetTimerStartedEventAttributes() == nil {
			continue
		}
		var name string
		if err := converter.GetDefaultDataConverter().FromPayload(e.GetUserMetadata().GetSummary(), &name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if len(names) == 0 || !strings.HasPrefix(names[0], "rest after attempt 1: ") {
		t.Errorf("timers are called %q", names)
	}
}
