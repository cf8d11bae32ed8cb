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
