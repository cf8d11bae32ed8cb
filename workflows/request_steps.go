package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"waybill/activities"
	"waybill/internal/herald"
)

// Times of a request's workflow.
const (
	// claimRetry is the rest after a database could not be asked.
	claimRetry = 5 * time.Second
	// shortWait is the rest where a state names none: the hook's slot is taken,
	// its owner is changing.
	shortWait = 2 * time.Second
	// startWithin is how long a task may wait for the owner to pick it up. Not
	// started means known unsent, and the lease counts on it (5 s of it).
	startWithin = 5 * time.Second
	// claimWithin bounds one run of a claim or a late write; sendWithin that of a
	// send where the starter has named no lease. A send carries its own, shorter
	// deadlines: this is for processes that died.
	claimWithin = 30 * time.Second
	sendWithin  = 6 * time.Minute
	// writeBackRest spaces the tries of a late write.
	writeBackRest = 2 * time.Second
	writeBackMost = time.Minute
)

// once is the retry policy of everything that may reach a receiver: the
// workflow spaces attempts itself, so that each is visible.
func once() *temporal.RetryPolicy { return &temporal.RetryPolicy{MaximumAttempts: 1} }

// lane gives the activities their names; its methods are never called here.
func lane() *activities.Herald { return nil }

// request is the state of one run.
type request struct {
	in       RequestInput
	attempts int
	rests    int // of this run, those that no word cut short
	inVain   int // sends in a row that were not made, and claims that found no room
	last     activities.ClaimState
	now      bool // an operator asked for a retry at once, not acted on yet
	retryNow workflow.ReceiveChannel
	shown    string // the search attribute as it stands
}

func newRequest(ctx workflow.Context, in RequestInput) *request {
	return &request{
		in: in, attempts: in.Attempts, now: in.Now, retryNow: workflow.GetSignalChannel(ctx, SignalRetryNow),
	}
}

// claim asks the process that runs this workflow task; if the hook is owned
// elsewhere, that owner.
func (r *request) claim(ctx workflow.Context) (activities.ClaimResult, error) {
	in := activities.ClaimInput{Ref: r.in.Ref, Attempt: r.attempts + 1, Now: r.now}
	var res activities.ClaimResult
	err := workflow.ExecuteLocalActivity(inside(ctx, claimWithin, askRow, in.Attempt), lane().Claim, in).Get(ctx, &res)
	if err != nil || res.State != activities.Elsewhere {
		return res, err
	}
	owner := onOwner(ctx, res.Queue, claimWithin, askRow, in.Attempt)
	res = activities.ClaimResult{}
	err = workflow.ExecuteActivity(owner, lane().Claim, in).Get(ctx, &res)
	// That process holds the claim: nothing can be sent inside this task.
	res.Fast = false
	return res, err
}

// send uses a claim in the process that won it: inside this workflow task when
// the receiver has been fast, else as a task of its own, where a slow POST is
// visible. A send that was not heard of again may have reached the receiver.
func (r *request) send(ctx workflow.Context, c activities.ClaimResult) activities.SendResult {
	r.attempts++
	in := activities.SendInput{Ref: r.in.Ref, Version: c.Version, Attempt: r.attempts}
	within := sendWithin
	if r.in.Lease > 0 {
		within = r.in.Lease
	}
	var res activities.SendResult
	var err error
	if c.Fast && r.attempts == 1 {
		err = workflow.ExecuteLocalActivity(inside(ctx, within, post, in.Attempt), lane().Send, in).Get(ctx, &res)
	} else {
		r.tellSending(ctx)
		err = workflow.ExecuteActivity(onOwner(ctx, c.Queue, within, post, in.Attempt), lane().Send, in).Get(ctx, &res)
	}
	switch {
	case notStarted(err):
		return activities.SendResult{State: activities.Unsent, Reason: "The hook's owner did not take the send up in time; nothing was sent."}
	case err != nil:
		return activities.SendResult{State: activities.Unknown, Reason: "The send was not heard of again."}
	case res.State == activities.Unwritten && res.Unwritten != nil:
		return r.writeBack(ctx, res)
	}
	return res
}

// writeBack writes a known result until it stands, whatever happens to this
// workflow meanwhile: it runs in the attempt's disconnected context.
func (r *request) writeBack(ctx workflow.Context, s activities.SendResult) activities.SendResult {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: claimWithin,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: writeBackRest, MaximumInterval: writeBackMost},
		Summary:             fmt.Sprintf("write the result of attempt %d into Phorge's row", r.attempts),
	})
	r.tellWriting(ctx)
	var res activities.WriteBackResult
	for workflow.ExecuteActivity(ctx, lane().WriteBack, *s.Unwritten).Get(ctx, &res) != nil {
		// Its retries have no end; only an operator can have failed it. Giving up
		// would mean to send again what the receiver has answered.
		_ = workflow.Sleep(ctx, writeBackMost)
	}
	switch res.Outcome {
	case herald.Written:
		s.State = activities.Recorded
	case herald.Collected:
		s.State = activities.Vanished
	case herald.Fenced:
		s.State = activities.Overtaken
	}
	return s
}

// notStarted recognises a task that nobody took up in time: known not to have
// run, which no other failure of a task is.
func notStarted(err error) bool {
	var late *temporal.TimeoutError
	return errors.As(err, &late) && late.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
}

// What the two activities are called in the timeline.
const (
	askRow = "take the row"
	post   = "POST to the receiver"
)

// inside are the options of an activity that runs within the workflow task.
func inside(ctx workflow.Context, within time.Duration, what string, attempt int) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: within, RetryPolicy: once(), Summary: fmt.Sprintf("%s, attempt %d", what, attempt),
	})
}

// onOwner are the options of a task that only the hook's owner may run.
func onOwner(ctx workflow.Context, queue string, within time.Duration, what string, attempt int) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: queue, ScheduleToStartTimeout: startWithin, StartToCloseTimeout: within,
		RetryPolicy: once(), Summary: fmt.Sprintf("%s, attempt %d", what, attempt),
	})
}

// rest waits as long as the step says, unless an operator asks for a retry at
// once or cancels.
func (r *request) rest(ctx workflow.Context, s step) {
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	timer := workflow.NewTimerWithOptions(timerCtx, s.wait, workflow.TimerOptions{Summary: r.summary(s)})
	workflow.NewSelector(ctx).
		AddFuture(timer, func(workflow.Future) { r.rests++ }).
		AddReceive(r.retryNow, func(workflow.ReceiveChannel, bool) { r.drain() }).
		AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {}).
		Select(ctx)
}

// drain takes every signal that has arrived: however many, they ask for one
// retry. A run that closes over unread ones would be made to start again.
func (r *request) drain() {
	for r.retryNow.ReceiveAsync(nil) {
		r.now = true
	}
}

// oneRetry names the change by which words said during a retry that a word
// brought ask for that retry (ADR 0009).
const oneRetry = "one-retry-for-words-during-it"

// forgetRepeats drops the words that arrived during an attempt that a word had
// brought: a burst of them reaches the workflow in several tasks, and is one
// retry all the same. Only a run that has such words pays for the version.
func (r *request) forgetRepeats(ctx workflow.Context) {
	if r.retryNow.Len() == 0 || workflow.GetVersion(ctx, oneRetry, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return
	}
	for r.retryNow.ReceiveAsync(nil) {
	}
}

// restsOfARun is how often one run rests, some 250 events. A worker
// replays them all whenever it has not kept the run, and thousands that rest are
// not kept: what a retry costs must not grow with those before it. The server's
// own suggestion comes after 4,096 events, some four hundred retries.
const restsOfARun = 25

// shortRuns names the change by which it is asked (ADR 0012).
const shortRuns = "continue-as-new-after-25-rests"

// long says that the history should be continued in a new run.
func (r *request) long(ctx workflow.Context) bool {
	if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		return true
	}
	return r.rests >= restsOfARun && workflow.GetVersion(ctx, shortRuns, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// continueAsNew keeps histories short; what was asked for goes along.
func (r *request) continueAsNew(ctx workflow.Context) error {
	r.drain()
	in := r.in
	in.Attempts, in.Now = r.attempts, r.now
	return workflow.NewContinueAsNewError(ctx, Request, in)
}
