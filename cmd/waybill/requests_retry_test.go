package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"

	"waybill/internal/config"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

// A row that was never tried has no rest: no signal goes to it, during its first
// attempt least of all, and the answer says what does happen.
func TestOnlyRowsThatHaveFailedAreToldToRetry(t *testing.T) {
	healthy := herald.Hook{URI: "http://127.0.0.1/x", HMACKey: []byte("k"), Status: "enabled"}
	row := func(s heralddb.State, result herald.Result) outlook {
		return outlook{
			hook: &healthy, owner: "o",
			row: heralddb.Listed{State: s, Now: 1000, Request: herald.Request{
				Status: herald.StatusQueued, LastResult: result, Created: 990, Modified: 990, Properties: []byte(`{}`),
			}},
		}
	}
	const none = "It has not failed yet, so there is no rest to end. "
	for name, tt := range map[string]struct {
		o    outlook
		want string
	}{
		"never tried":                   {row(heralddb.StateQueued, herald.ResultNone), none + "It is sent as soon as it is its turn."},
		"its first attempt":             {row(heralddb.StateClaimed, herald.ResultNone), none + "It is being sent."},
		"rests":                         {row(heralddb.StateResting, herald.ResultFail), ""},
		"due":                           {row(heralddb.StateDue, herald.ResultFail), ""},
		"tried again":                   {row(heralddb.StateClaimed, herald.ResultFail), ""},
		"over":                          {row(heralddb.StateSent, herald.ResultOkay), "Nothing: it was delivered."},
		"failed by its hook's settings": {row(heralddb.StateFailed, herald.ResultNone), "Nothing: failed is final"},
	} {
		if got := tt.o.restless(); !strings.HasPrefix(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Where no workflow is open, the answer names what keeps Waybill from starting
// one: an open breaker before the row's own rest.
func TestWithoutAWorkflowTheFirstObstacleIsNamed(t *testing.T) {
	const now, backoff = 1000, 60
	healthy := herald.Hook{URI: "http://127.0.0.1/x", HMACKey: []byte("k"), Status: "enabled"}
	rests := heralddb.Listed{State: heralddb.StateResting, Now: now, Request: herald.Request{LastEpoch: now - 10, Properties: []byte(`{}`)}}
	for name, tt := range map[string]struct {
		o    outlook
		want string
	}{
		"rest":            {outlook{row: rests, hook: &healthy, owner: "o"}, "when its rest is over, from " + stamp(now+50)},
		"breaker, longer": {outlook{row: rests, hook: &healthy, owner: "o", until: now + 90}, "the breaker, which is open until " + stamp(now+90)},
		"breaker, less":   {outlook{row: rests, hook: &healthy, owner: "o", until: now + 9}, "the breaker, which is open until " + stamp(now+9)},
		"crash, longer":   {outlook{row: rests, hook: &healthy, owner: "o", begins: now + 51}, "Sending begins again at " + stamp(now+51)},
		"crash, less":     {outlook{row: rests, hook: &healthy, owner: "o", begins: now + 49}, "when its rest is over, from " + stamp(now+50)},
		"paused":          {outlook{row: rests, hook: &healthy, pause: &pauseView{Kind: hookPaused, By: "ada"}, until: now + 9}, "paused by ada"},
	} {
		tt.o.backoff = backoff
		if got := tt.o.untold(); !strings.Contains(got, tt.want) || !strings.HasPrefix(got, "No workflow is open for it. ") {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A signal ends a rest and nothing else: what still holds the row is named.
func TestASignalDoesNotPassWhatHoldsTheHook(t *testing.T) {
	const now = 1000
	rests := outlook{
		row:  heralddb.Listed{State: heralddb.StateResting, Now: now, Request: herald.Request{LastEpoch: now - 10, Properties: []byte(`{}`)}},
		hook: &herald.Hook{URI: "http://127.0.0.1/x", HMACKey: []byte("k"), Status: "enabled"}, owner: "o", backoff: 60,
	}
	for name, tt := range map[string]struct {
		begins, until int64
		want          string
	}{
		"nothing":                           {0, 0, "Told: it is tried as soon as it is its turn."},
		"an owner crashed, less than rests": {now + 9, 0, "Told, and still: It waits, as every request of the hook does: " + cutOff + ", and may still be calling. Sending begins again at " + stamp(now+9) + "."},
		"breaker":                           {0, now + 9, "Told, and still: It waits for the breaker, which is open until " + stamp(now+9)},
	} {
		o := rests
		o.begins, o.until = tt.begins, tt.until
		if got := o.told(); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// What ends the command is right for one request and for several.
func TestRequestsThatWereNotToldAreCounted(t *testing.T) {
	told, untold := retryView{Told: true}, retryView{}
	gone := retryView{failure: herald.ErrGone}
	for _, tt := range []struct {
		hook  string
		views []retryView
		want  string // empty: no failure
	}{
		{"", []retryView{told}, ""},
		{"", []retryView{untold}, "the request was not told to retry; the line above says why"},
		{"", []retryView{untold, gone}, "none of the 2 requests was told to retry; the lines above say why"},
		{"", []retryView{told, untold, gone}, "2 of 3 requests were not told to retry; the lines above say why"},
		{"", []retryView{told, untold, told}, "1 of 3 requests was not told to retry; the lines above say why"},
		{"h", []retryView{told, untold}, ""},
		{"h", []retryView{gone}, "the request was not told to retry; the line above says why"},
	} {
		got := ""
		if err := retried(retryWish{hook: tt.hook}, tt.views); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.views, got, tt.want)
		}
	}
}

// A Temporal that goes away in the middle of a thousand requests costs two
// signals, not a thousand; one that answers, even with a refusal, goes on.
func TestRetryEndsAfterTwoSignalsWithoutAnAnswer(t *testing.T) {
	const told, silence, refusal, gone, away = "told", "silence", "refusal", "gone", "away"
	outcomes := map[string]struct {
		failure, err error
	}{
		told:    {},
		silence: {fmt.Errorf("signal: %w", serviceerror.NewUnavailable("connection refused")), nil},
		refusal: {serviceerror.NewResourceExhausted(0, "Workflow is busy"), nil},
		gone:    {herald.ErrGone, nil},
		away:    {nil, errors.New("database away")},
	}
	for _, tt := range []struct {
		names []string
		views int
		want  string // in the error
	}{
		{[]string{told, told, told}, 3, ""},
		{[]string{told, silence, silence, told}, 3, "WAYBILL_TEMPORAL_ADDRESS is 127.0.0.1:7"},
		{[]string{silence, told, silence, told}, 4, ""},
		{[]string{refusal, refusal, refusal, gone, gone}, 5, ""},
		{[]string{told, away, told}, 1, "database away"},
	} {
		j := job{config: config.Config{Temporal: config.Temporal{Address: "127.0.0.1:7"}}}
		views, err := tellAll(j, tt.names, func(name string) (retryView, error) {
			o := outcomes[name]
			return retryView{Request: name, failure: o.failure}, o.err
		})
		if len(views) != tt.views || (tt.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %d requests, %v", tt.names, len(views), err)
		}
	}
}
