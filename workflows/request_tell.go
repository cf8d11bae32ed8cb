package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"waybill/internal/herald"
)

// tell shows how things stand in the Web UI. A delivery at the first attempt
// has nothing to tell, and pays for nothing: the list shows it as completed.
func (r *request) tell(ctx workflow.Context, s step) {
	if s.end == Delivered && r.attempts == 1 {
		return
	}
	// Every write of an attribute is one of the visibility store, so a hook that
	// is asked for again and again is written about once.
	if state := s.state(); r.in.Attributes && state != r.shown {
		r.shown = state
		// A failed upsert is the server's to report; the delivery does not depend on it.
		_ = workflow.UpsertTypedSearchAttributes(ctx, AttributeState.ValueSet(state))
	}
	workflow.SetCurrentDetails(ctx, r.details(ctx, s))
}

// tellSending is for the length of a POST that has a task of its own.
func (r *request) tellSending(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**sending**, attempt %d since %s\n",
		r.attempts, workflow.Now(ctx).UTC().Format(time.RFC3339)))
}

// tellWriting is for the time in which only Phorge's table is missing.
func (r *request) tellWriting(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("**writing back** attempt %d\n\nThe receiver has answered, "+
		"but the result could not be written into Phorge's table yet. It is being written until it stands; "+
		"the request is not sent again meanwhile.\n", r.attempts))
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
	fmt.Fprintf(&b, "**%s** %s", s.state(), r.tries())
	if s.end == "" {
		// First, because the page shows little more than the first lines.
		next := workflow.Now(ctx).Add(s.wait).UTC().Format(time.RFC3339)
		fmt.Fprintf(&b, ". Next attempt not before %s. Signal `%s` to try at once.", next, SignalRetryNow)
	}
	b.WriteString("\n\n")
	if text := s.because(); text != "" {
		fmt.Fprintf(&b, "%s\n\n", text)
	}
	if s.row != nil && s.row.ErrorType != "" {
		fmt.Fprintf(&b, "Phorge's row: `%s` / `%s`, %s\n\n", s.row.Status, s.row.Result, DescribeError(s.row.ErrorType, s.row.ErrorCode))
	}
	return b.String()
}

// tries counts for people.
func (r *request) tries() string {
	switch r.attempts {
	case 0:
		return "without an attempt"
	case 1:
		return "after 1 attempt"
	}
	return fmt.Sprintf("after %d attempts", r.attempts)
}

// endWords say what the ends mean that Temporal shows as completed like any
// other, although nothing was delivered.
var endWords = map[Outcome]string{
	Deferred:      "Not sent this time: the row waits in Phorge's table and is started again when there is a chance.",
	Unprocessable: "Not sent: the row cannot be processed as it is and stays in the table until somebody changes it.",
}

// because is the reason of a step, with what it means where that is not plain.
func (s step) because() string {
	text, meaning := s.text, endWords[s.end]
	if text != "" && meaning != "" && !strings.HasSuffix(text, ".") {
		text += "." // an operator's reason, a fault of the properties
	}
	return strings.TrimSpace(text + " " + meaning)
}

// summary names a rest by what it follows, for the history's timeline.
func (r *request) summary(s step) string {
	if s.row == nil || s.row.ErrorType == "" {
		return s.text
	}
	return fmt.Sprintf("rest after attempt %d: %s", r.attempts, DescribeError(s.row.ErrorType, s.row.ErrorCode))
}

// curlWords are the codes below 100, which Phorge keeps in the place of a status
// (herald.CurlNotHTTP and what follows it).
var curlWords = map[string]string{
	"1": "the answer is not HTTP", "6": "the host's name does not resolve for now", "7": "no connection",
	"18": "the answer broke off", "28": "no complete answer in time", "35": "the TLS handshake failed",
	"52": "closed without an answer", "56": "the connection was reset", "60": "the certificate is not trusted",
}

// hookWords are Phorge's words for a hook whose own settings fail its requests.
var hookWords = map[string]string{
	herald.HookDisabled: "the hook is disabled in Phorge",
	herald.HookURI:      "the hook's address is not one that may be called",
	herald.HookObject:   "the object that the request is about does not exist",
}

// DescribeError says a row's errorType and errorCode in words.
func DescribeError(kind, code string) string {
	switch kind {
	case string(herald.ErrorHTTP):
		// Phorge keeps both in one place; curl's numbers end below 100.
		if len(code) >= len("100") {
			return "HTTP status " + code
		}
		return inWords(curlWords, code, "no usable answer", "curl ")
	case string(herald.ErrorTimeout):
		return inWords(curlWords, code, "no complete answer in time", "curl ")
	case string(herald.ErrorHook):
		return inWords(hookWords, code, "the hook's own settings", "")
	}
	return kind + " " + code
}

// inWords keeps the code beside the words, for those who know it or search for it.
func inWords(words map[string]string, code, otherwise, before string) string {
	text, ok := words[code]
	if !ok {
		text = otherwise
	}
	return text + " (" + before + code + ")"
}

// result closes the story.
func (r *request) result(s step) RequestResult {
	if s.end != Deferred {
		s.wait = 0
	}
	return RequestResult{Outcome: s.end, Attempts: r.attempts, Reason: s.because(), Row: s.row, State: r.last, Wait: s.wait}
}
