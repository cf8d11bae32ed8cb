package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"waybill/activities"
)

// tell shows how things stand in the Web UI. A delivery at the first attempt
// has nothing to tell, and pays for nothing: the list shows it as completed.
func (r *request) tell(ctx workflow.Context, s step) {
	if s.end == Delivered && r.attempts == 1 {
		return
	}
	if r.in.Attributes {
		// A failed upsert is the server's to report; the delivery does not depend on it.
		_ = workflow.UpsertTypedSearchAttributes(ctx, AttributeState.ValueSet(s.state()))
	}
	workflow.SetCurrentDetails(ctx, r.details(ctx, s))
}

// state is the value of WaybillState.
func (s step) state() string {
	if s.end != "" {
		return string(s.end)
	}
	if s.row != nil {
		return "retrying"
	}
	return "waiting"
}

// details are Markdown for the workflow's page.
func (r *request) details(ctx workflow.Context, s step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** after %d attempt(s)\n\n", s.state(), r.attempts)
	if s.text != "" {
		fmt.Fprintf(&b, "%s\n\n", s.text)
	}
	if s.row != nil && s.row.ErrorType != "" {
		fmt.Fprintf(&b, "Phorge's row: `%s` / `%s`, %s\n\n", s.row.Status, s.row.Result, describe(s.row))
	}
	if s.end == "" {
		next := workflow.Now(ctx).Add(s.wait).UTC().Format(time.RFC3339)
		fmt.Fprintf(&b, "Next attempt not before %s. Signal `%s` to try at once.\n", next, SignalRetryNow)
	}
	return b.String()
}

// describe says an error type and code in words.
func describe(row *activities.RowEnd) string {
	switch row.ErrorType {
	case "http":
		return "HTTP status or curl code " + row.ErrorCode
	case "timeout":
		return "no complete answer in time (" + row.ErrorCode + ")"
	case "hook":
		return "the hook's own settings: " + row.ErrorCode
	}
	return row.ErrorType + " " + row.ErrorCode
}

// result closes the story.
func (r *request) result(s step) RequestResult {
	return RequestResult{Outcome: s.end, Attempts: r.attempts, Reason: s.text, Row: s.row, State: r.last}
}
