package workflows

import (
	"go.temporal.io/sdk/converter"
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
	PHID string `json:"phid"`
	// Paused and Released exclude each other; Pause says who asked for either.
	Paused   bool          `json:"paused"`
	Released bool          `json:"released,omitempty"`
	Pause    *herald.Pause `json:"pause,omitempty"`
}

// Hook stands for one hook as long as it exists: the target of an operator's
// pause, release and resume, and the place to look how the hook stands. It is never on
// the path of a delivery; what it decides it writes into the pause table,
// which admission reads before every attempt. Commands write that table
// themselves, so what the workflow knows of it may be old.
func Hook(ctx workflow.Context, in HookInput) error {
	h := &hook{in: in}
	if err := workflow.SetQueryHandler(ctx, QueryState, h.state); err != nil {
		return err
	}
	if err := h.load(ctx); err != nil {
		return err
	}
	h.listen(ctx)
	// What was signalled before the end is still done: a pause must not be lost
	// to a hook that is back a moment later.
	for !h.retired || h.selector.HasPending() {
		h.tell(ctx)
		h.selector.Select(ctx)
		if h.err != nil {
			return h.err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() && !h.selector.HasPending() && !h.retired {
			return workflow.NewContinueAsNewError(ctx, Hook, in)
		}
	}
	return nil
}

// hook is the state of one run. What must outlive it stands in the pause table.
type hook struct {
	in       HookInput
	pause    *herald.Pause // as the table had it last
	selector workflow.Selector
	refresh  workflow.ReceiveChannel
	retired  bool
	err      error
	shown    string // the search attribute as it stands
}

func (h *hook) state() (HookState, error) {
	s := HookState{PHID: h.in.PHID, Pause: h.pause}
	if h.pause != nil {
		s.Paused, s.Released = !h.pause.Released, h.pause.Released
	}
	return s, nil
}

// load takes over a pause that an earlier run, or another cluster, has left.
// A pause of all hooks is not this hook's: taken for its own it would swallow
// the operator's next signal and be shown after its end.
func (h *hook) load(ctx workflow.Context) error {
	var stands *herald.Pause
	err := workflow.ExecuteActivity(stubborn(ctx, "look whether the hook is paused"), lane().Paused, h.in.PHID).Get(ctx, &stands)
	if stands != nil && stands.HookPHID != h.in.PHID {
		stands = nil
	}
	if err == nil {
		h.pause = stands
	}
	return err
}

// listen says what each signal does. Signals of different names that arrived
// while a database was away have lost their order: then a resume is taken before
// a release and a release before a pause, because a hook that stays paused by
// mistake is seen and resumed, and a call that went out is not taken back. What a
// command has written counts most: a resume that waits beside its word is dropped.
func (h *hook) listen(ctx workflow.Context) {
	h.refresh = workflow.GetSignalChannel(ctx, SignalRefresh)
	h.selector = workflow.NewSelector(ctx).
		AddReceive(workflow.GetSignalChannel(ctx, SignalResume), func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			if h.refresh.Len() == 0 {
				h.onResume(ctx)
			}
		}).
		AddReceive(workflow.GetSignalChannel(ctx, SignalRelease), func(c workflow.ReceiveChannel, _ bool) {
			h.onPause(ctx, argument(ctx, c), true)
		}).
		AddReceive(workflow.GetSignalChannel(ctx, SignalPause), func(c workflow.ReceiveChannel, _ bool) {
			h.onPause(ctx, argument(ctx, c), false)
		}).
		AddReceive(h.refresh, func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			h.err = h.load(ctx)
		}).
		AddReceive(workflow.GetSignalChannel(ctx, SignalRetire), func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			h.retired = true
		}).
		AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { h.err = ctx.Err() })
}

// argument takes a signal's argument as it is.
func argument(ctx workflow.Context, c workflow.ReceiveChannel) []byte {
	var raw converter.RawValue
	c.Receive(ctx, &raw)
	return raw.Payload().GetData()
}

// onPause keeps who paused or released the hook and why. The first of two equal
// orders stands, a pause and a release replace each other. It counts once it is
// written: before, admission does not know it. Cancelling the workflow does not
// take back what was asked for before.
func (h *hook) onPause(ctx workflow.Context, argument []byte, released bool) {
	if h.stands(released) && workflow.GetVersion(ctx, versionAskTheTable, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return
	}
	p := parsePause(argument)
	p.HookPHID, p.At, p.Released = h.in.PHID, workflow.Now(ctx), released
	summary := "write the pause"
	if released {
		summary = "write the release"
	}
	h.change(ctx, summary, lane().Pause, p)
	if h.err == nil && h.pause == nil { // as a worker of an earlier version answers
		h.pause = &p
	}
}

// stands says that such an order is known.
func (h *hook) stands(released bool) bool { return h.pause != nil && h.pause.Released == released }

// onResume ends the order that is known, and only that: one that a command gives
// while the table is away stands. Where none is known it ends what there is.
func (h *hook) onResume(ctx workflow.Context) {
	h.change(ctx, "end the pause or release", lane().Resume, h.in.PHID, h.pause)
}

// change writes the table, and keeps what stands there then.
func (h *hook) change(ctx workflow.Context, summary string, activity any, args ...any) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	var stands *herald.Pause
	if h.err = workflow.ExecuteActivity(stubborn(ctx, summary), activity, args...).Get(ctx, &stands); h.err == nil {
		h.pause = stands
	}
}
