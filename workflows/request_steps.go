package workflows

import (
	"fmt"
	"time"

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
	// claimWithin and sendWithin bound one run of an activity; a send carries
	// its own, shorter deadlines.
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
	last     activities.ClaimState
	now      bool // an operator asked for a retry at once
	retryNow workflow.ReceiveChannel
}

func newRequest(ctx workflow.Context, in RequestInput) *request {
	return &request{in: in, attempts: in.Attempts, retryNow: workflow.GetSignalChannel(ctx, SignalRetryNow)}
}

// claim asks the process that runs this workflow task; if the hook is owned
// elsewhere, that owner.
func (r *request) claim(ctx workflow.Context) (activities.ClaimResult, error) {
	in := activities.ClaimInput{Ref: r.in.Ref, Attempt: r.attempts + 1, Now: r.now}
	r.now = false
	var res activities.ClaimResult
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: claimWithin, RetryPolicy: once(), Summary: fmt.Sprintf("claim %d", in.Attempt),
	})
	err := workflow.ExecuteLocalActivity(local, lane().Claim, in).Get(ctx, &res)
	if err != nil || res.State != activities.Elsewhere {
		return res, err
	}
	err = workflow.ExecuteActivity(r.onOwner(ctx, res.Queue, claimWithin, "claim %d"), lane().Claim, in).Get(ctx, &res)
	return res, err
}

// send uses a claim in the process that won it: inside this workflow task when
// the receiver has been fast, else as a task of its own, where a slow POST is
// visible. A send that was not heard of again may have reached the receiver.
func (r *request) send(ctx workflow.Context, c activities.ClaimResult) activities.SendResult {
	r.attempts++
	in := activities.SendInput{Ref: r.in.Ref, Version: c.Version, Attempt: r.attempts}
	var res activities.SendResult
	var err error
	if c.Fast && r.attempts == 1 {
		local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
			ScheduleToCloseTimeout: sendWithin, RetryPolicy: once(), Summary: "send 1",
		})
		err = workflow.ExecuteLocalActivity(local, lane().Send, in).Get(ctx, &res)
	} else {
		err = workflow.ExecuteActivity(r.onOwner(ctx, c.Queue, sendWithin, "send %d"), lane().Send, in).Get(ctx, &res)
	}
	if err != nil {
		return activities.SendResult{State: activities.Unknown, Wait: shortWait, Reason: "The send was not heard of again."}
	}
	if res.State == activities.Unwritten {
		return r.writeBack(ctx, res)
	}
	return res
}

// writeBack writes a known result until it stands, whatever happens to this
// workflow meanwhile.
func (r *request) writeBack(ctx workflow.Context, s activities.SendResult) activities.SendResult {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: TaskQueue, StartToCloseTimeout: claimWithin,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: writeBackRest, MaximumInterval: writeBackMost},
		Summary:     fmt.Sprintf("write back %d", r.attempts),
	})
	workflow.SetCurrentDetails(ctx, "The receiver has answered, but the result could not be written into Phorge's table yet. It is being written until it stands; the request is not sent again meanwhile.")
	var res activities.WriteBackResult
	if err := workflow.ExecuteActivity(ctx, lane().WriteBack, *s.Unwritten).Get(ctx, &res); err != nil {
		return activities.SendResult{State: activities.Unknown, Wait: shortWait, Reason: "The late write was not heard of again."}
	}
	s.State = map[herald.WriteOutcome]activities.SendState{
		herald.Written: activities.Recorded, herald.Collected: activities.Vanished, herald.Fenced: activities.Overtaken,
	}[res.Outcome]
	return s
}

// onOwner are the options of a task that only the hook's owner may run.
func (r *request) onOwner(ctx workflow.Context, queue string, within time.Duration, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: queue, ScheduleToStartTimeout: startWithin, StartToCloseTimeout: within,
		RetryPolicy: once(), WaitForCancellation: true, Summary: fmt.Sprintf(summary, r.attempts),
	})
}

// pause rests, unless an operator asks for a retry at once.
func (r *request) pause(ctx workflow.Context, d time.Duration, why string) error {
	if d <= 0 {
		d = shortWait
	}
	timerCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	timer := workflow.NewTimerWithOptions(timerCtx, d, workflow.TimerOptions{Summary: why})
	var err error
	workflow.NewSelector(ctx).
		AddFuture(timer, func(f workflow.Future) { err = f.Get(ctx, nil) }).
		AddReceive(r.retryNow, func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			r.now = true
		}).
		AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { err = ctx.Err() }).
		Select(ctx)
	return err
}

// shouldContinueAsNew keeps histories short; a pending signal is used first.
func (r *request) shouldContinueAsNew(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && !r.now && r.retryNow.Len() == 0
}

func (r *request) continueAsNew(ctx workflow.Context) error {
	in := r.in
	in.Attempts = r.attempts
	return workflow.NewContinueAsNewError(ctx, Request, in)
}

// cancelled ends a cancelled run. The row stays as it is, so the request is
// started again when it is due: to stop it, pause its hook.
func (r *request) cancelled(ctx workflow.Context, err error) (RequestResult, error) {
	if !temporal.IsCanceledError(err) {
		return RequestResult{}, err
	}
	return RequestResult{}, ctx.Err()
}
