package workflows

import (
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"waybill/internal/herald"
)

// HookInput starts or continues a hook's workflow.
type HookInput struct {
	PHID string `json:"phid"`
	// Attributes says that the server knows Waybill's search attributes.
	Attributes bool `json:"attributes,omitempty"`
}

// HookState is what the state query returns.
type HookState struct {
	PHID   string        `json:"phid"`
	Paused bool          `json:"paused"`
	Pause  *herald.Pause `json:"pause,omitempty"`
}

// Hook stands for one hook as long as it exists: the target of an operator's
// pause and resume, and the place to look how the hook stands. It is never on
// the path of a delivery; what it decides it writes into the pause table,
// which admission reads before every attempt.
func Hook(ctx workflow.Context, in HookInput) error {
	h := &hook{in: in}
	if err := workflow.SetQueryHandler(ctx, QueryState, h.state); err != nil {
		return err
	}
	if err := h.load(ctx); err != nil {
		return err
	}
	h.listen(ctx)
	for !h.retired {
		h.tell(ctx)
		h.selector.Select(ctx)
		if h.err != nil {
			return h.err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() && !h.selector.HasPending() {
			return workflow.NewContinueAsNewError(ctx, Hook, in)
		}
	}
	return nil
}

// hook is the state of one run.
type hook struct {
	in       HookInput
	pause    *herald.Pause
	selector workflow.Selector
	retired  bool
	err      error
}

func (h *hook) state() (HookState, error) {
	return HookState{PHID: h.in.PHID, Paused: h.pause != nil, Pause: h.pause}, nil
}

// load takes over a pause that an earlier run, or another cluster, has left.
func (h *hook) load(ctx workflow.Context) error {
	return workflow.ExecuteActivity(h.stubborn(ctx, "read the pause table"), lane().Paused, h.in.PHID).Get(ctx, &h.pause)
}

func (h *hook) listen(ctx workflow.Context) {
	h.selector = workflow.NewSelector(ctx).
		AddReceive(workflow.GetSignalChannel(ctx, SignalPause), func(c workflow.ReceiveChannel, _ bool) {
			var raw converter.RawValue
			c.Receive(ctx, &raw)
			h.onPause(ctx, raw)
		}).
		AddReceive(workflow.GetSignalChannel(ctx, SignalResume), func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			h.err = workflow.ExecuteActivity(h.stubborn(ctx, "resume"), lane().Resume, h.in.PHID).Get(ctx, nil)
			h.pause = nil
		}).
		AddReceive(workflow.GetSignalChannel(ctx, SignalRetire), func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			h.retired = true
		}).
		AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { h.err = ctx.Err() })
}

// onPause keeps who paused the hook and why. The first pause stands.
func (h *hook) onPause(ctx workflow.Context, raw converter.RawValue) {
	if h.pause != nil {
		return
	}
	p := parsePause(raw.Payload().GetData())
	p.HookPHID, p.At = h.in.PHID, workflow.Now(ctx)
	h.pause = &p
	h.err = workflow.ExecuteActivity(h.stubborn(ctx, "pause"), lane().Pause, p).Get(ctx, nil)
}

// parsePause reads a signal's argument: {"by":..,"reason":..}, a JSON string as
// the reason, or anything else as it is. A pause is never refused for its form.
func parsePause(data []byte) herald.Pause {
	p := herald.Pause{By: "an operator"}
	var long struct{ By, Reason string }
	var reason string
	switch {
	case len(data) == 0 || string(data) == "null":
	case json.Unmarshal(data, &long) == nil:
		p.Reason = long.Reason
		if long.By != "" {
			p.By = long.By
		}
	case json.Unmarshal(data, &reason) == nil:
		p.Reason = reason
	default:
		p.Reason = string(data)
	}
	return p
}

// stubborn options try without end: an operator's word is not dropped because
// a database was away.
func (h *hook) stubborn(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: TaskQueue, StartToCloseTimeout: 10 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumInterval: 10 * time.Second},
		Summary:     summary,
	})
}

// tell shows how the hook stands in the Web UI.
func (h *hook) tell(ctx workflow.Context) {
	state, text := "running", "**Running.** Signal `pause` (argument: a reason) to stop new attempts.\n"
	if p := h.pause; p != nil {
		state = "paused"
		text = fmt.Sprintf("**Paused** by %s at %s.\n\n%s\n\nSignal `resume` to continue.\n",
			p.By, p.At.UTC().Format(time.RFC3339), p.Reason)
	}
	workflow.SetCurrentDetails(ctx, text)
	if h.in.Attributes {
		_ = workflow.UpsertTypedSearchAttributes(ctx, AttributeState.ValueSet(state))
	}
}
