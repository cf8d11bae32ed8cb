package workflows

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"waybill/internal/herald"
)

// versionAskTheTable: the pause that a run knows of may have been ended by a
// command that could not tell it; so an equal one is written all the same.
const versionAskTheTable = "ask-the-table-for-equal-orders"

// Times of a hook's workflow. The first retry is soon, because an operator is
// watching. The last ones are for a database that is away: when it is back,
// attempts begin again, and a pause must not come later than the second that it
// has at any other time.
const (
	pauseWithin    = 10 * time.Second
	pauseRest      = 100 * time.Millisecond
	pauseRestLimit = time.Second
)

// Longest texts of a pause, in characters: those of the pause table's columns.
const (
	maxBy     = 128
	maxReason = 1024
)

// stubborn options try without end: an operator's word is not dropped because
// a database was away.
func stubborn(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: pauseWithin,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: pauseRest, MaximumInterval: pauseRestLimit},
		Summary:             summary,
	})
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
	p.By, p.Reason = cut(p.By, maxBy), cut(p.Reason, maxReason)
	return p
}

// cut keeps the first n characters and what is valid of them.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}

// tell shows how the hook stands in the Web UI.
func (h *hook) tell(ctx workflow.Context) {
	state, text := "running", "**Running.** Signal `pause` (argument: a reason) to stop new attempts. "+
		"`release` to let Phorge deliver. A pause or release of all hooks is not shown here.\n"
	if p := h.pause; p != nil && p.Released {
		state = "released"
		text = fmt.Sprintf("**Released** to Phorge by %s at %s.\n%s\n"+
			"Phorge's own worker delivers. Signal `resume` to take the hook back.\n", p.By, p.At.UTC().Format(time.RFC3339), paragraph(p.Reason))
	} else if p != nil {
		state = "paused"
		text = fmt.Sprintf("**Paused** by %s at %s.\n%s\nSignal `resume` to continue.\n",
			p.By, p.At.UTC().Format(time.RFC3339), paragraph(p.Reason))
	}
	workflow.SetCurrentDetails(ctx, text)
	if h.in.Attributes && state != h.shown {
		h.shown = state
		_ = workflow.UpsertTypedSearchAttributes(ctx, AttributeState.ValueSet(state))
	}
}

// paragraph sets a text off, if there is one.
func paragraph(text string) string {
	if text == "" {
		return ""
	}
	return "\n" + text + "\n"
}
