package main

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

func TestRequests(t *testing.T) {
	const hook, one, two = "PHID-HWBH-aaaaaaaaaaaaaaaaaaaa", "PHID-HWBR-bbbbbbbbbbbbbbbbbbbb", "PHID-HWBR-cccccccccccccccccccc"
	for _, test := range []struct {
		args []string
		call string // empty: refused
	}{
		{[]string{"list"}, `rows of "" in [], 50, false`},
		{[]string{"list", "--hook", hook, "--state", "queued,resting", "--limit", "7", "--json"}, `rows of "` + hook + `" in [queued resting], 7, true`},
		{[]string{"list", "--state", "lost"}, ""},
		{[]string{"list", "--limit", "0"}, ""},
		{[]string{"list", "--limit", "10001"}, ""},
		{[]string{"list", "--hook", one}, ""},
		{[]string{"list", one}, ""},
		{[]string{"show", one}, "row " + one},
		{[]string{"show", "17", "--json"}, "row 17 as JSON"},
		{[]string{"show"}, ""},
		{[]string{"show", one, two}, ""},
		{[]string{"show", hook}, ""},
		{[]string{"show", "-1"}, ""},
		{[]string{"show", "4294967296"}, ""},
		{[]string{"retry-now", one, "17"}, `retry [` + one + ` 17] of "", false`},
		{[]string{"retry-now", "--hook", hook, "--json"}, `retry [] of "` + hook + `", true`},
		{[]string{"retry-now"}, ""},
		{[]string{"retry-now", "--hook", hook, one}, ""},
		{[]string{"retry-now", "--hook", one}, ""},
		{[]string{"retry-now", hook}, ""},
		{[]string{"requeue", one}, ""},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			var calls []string
			got := execute(recorded(&calls, nil), nil, append([]string{"requests"}, test.args...)...)
			if test.call == "" {
				if got.code != exitUsage || len(calls) != 0 || got.stdout != "" {
					t.Errorf("%+v, calls %q", got, calls)
				}
				return
			}
			if got.code != exitDone || len(calls) != 1 || calls[0] != test.call {
				t.Errorf("%+v, calls %q", got, calls)
			}
		})
	}
	var calls []string
	if got := execute(recorded(&calls, errors.New("away")), nil, "requests", "list"); got.code != exitFailed {
		t.Errorf("%+v", got)
	}
	only := work{requests: requestWork{show: func(context.Context, job, string, bool) error { return nil }}}
	if got := execute(only, nil, "requests"); !strings.Contains(got.stdout, "show") || strings.Contains(got.stdout, "retry-now") {
		t.Errorf("partly wired: %+v", got)
	}
}

// What happens next is said for every state of a row and everything that can
// stand in its way, the first thing first.
func TestTheOutlookNamesWhatStandsInTheWay(t *testing.T) {
	const now, lease, backoff = 1000, 30, 60
	healthy := herald.Hook{URI: "http://127.0.0.1/x", HMACKey: []byte("k"), Status: "enabled"}
	disabled, mute, lost := healthy, healthy, healthy
	disabled.Status, mute.HMACKey, lost.URI = "disabled", nil, "ftp://x"
	paused := &pauseView{Kind: hookPaused, By: "ada", Reason: "move"}
	released := &pauseView{Kind: hookReleased, By: "ada", AllHooks: true}
	row := func(s heralddb.State) heralddb.Listed {
		return heralddb.Listed{State: s, Now: now, Request: herald.Request{LastEpoch: now - 10, Modified: now - 5, Properties: []byte(`{}`)}}
	}
	queued := func(s heralddb.State, r herald.Request) heralddb.Listed {
		r.Status, r.Properties = herald.StatusQueued, []byte(`{}`)
		return heralddb.Listed{State: s, Now: now, Request: r}
	}
	const day = 24 * 3600
	claimed := func(s heralddb.State, modified int64) heralddb.Listed {
		return queued(s, herald.Request{LastResult: herald.ResultNone, Created: now - 9, Modified: modified})
	}
	failed := func(epoch int64) heralddb.Listed {
		return queued(heralddb.StateResting, herald.Request{LastResult: herald.ResultFail, LastEpoch: epoch, Modified: epoch})
	}
	ahead := herald.Request{LastResult: herald.ResultNone, Created: now + 9*day, Modified: now + 9*day}
	broken := row(heralddb.StateQueued)
	broken.Properties = []byte(`5`)
	at := func(s int64) string { return moment(s).String() }
	if v := (&tables{}).viewRequest(failed(now + day + 1)); v.Next != nil {
		t.Errorf("a list says when a row from the far future is tried: %v", v.Next)
	}
	for name, tt := range map[string]struct {
		o    outlook
		text string
		from int64
	}{
		"sent":                          {outlook{row: row(heralddb.StateSent)}, "Nothing: it was delivered.", 0},
		"failed":                        {outlook{row: row(heralddb.StateFailed)}, "not put back into the queue", 0},
		"unknown":                       {outlook{row: row(heralddb.StateUnknown)}, "none that Phorge writes", 0},
		"hook gone":                     {outlook{row: row(heralddb.StateQueued), pause: paused}, "its hook is gone", 0},
		"paused":                        {outlook{row: row(heralddb.StateResting), hook: &healthy, pause: paused}, "until the hook is resumed: paused by ada: move", 0},
		"released":                      {outlook{row: row(heralddb.StateDue), hook: &healthy, pause: released}, "released to Phorge by ada (all hooks)", 0},
		"unowned":                       {outlook{row: row(heralddb.StateDue), hook: &healthy}, "that owns its hook", 0},
		"properties":                    {outlook{row: broken, hook: &healthy, owner: "o"}, "cannot be processed (properties: neither a JSON object nor a list)", 0},
		"disabled":                      {outlook{row: row(heralddb.StateQueued), hook: &disabled, owner: "o", until: now + 9}, "the hook is disabled in Phorge", 0},
		"address":                       {outlook{row: row(heralddb.StateQueued), hook: &lost, owner: "o"}, "address is not one that may be called", 0},
		"key":                           {outlook{row: row(heralddb.StateQueued), hook: &mute, owner: "o"}, "no HMAC key", 0},
		"far claim":                     {outlook{row: claimed(heralddb.StateClaimed, now+day-lease+1), hook: &healthy, pause: paused}, "dated more than a day ahead", 0},
		"day's claim":                   {outlook{row: claimed(heralddb.StateClaimed, now+day-lease), hook: &healthy, owner: "o"}, "It is being sent", 0},
		"far failure":                   {outlook{row: failed(now + day + 1), hook: &healthy, owner: "o"}, "dated more than a day ahead", 0},
		"day's failure":                 {outlook{row: failed(now + day), hook: &healthy, owner: "o"}, "It rests", now + day + backoff},
		"far and released":              {outlook{row: failed(now + 9*day), hook: &healthy, pause: released}, "Phorge's own worker delivers it", 0},
		"made far ahead, never claimed": {outlook{row: queued(heralddb.StateQueued, ahead), hook: &healthy, owner: "o"}, "sent as soon as it is its turn", now},
		"claimed":                       {outlook{row: row(heralddb.StateClaimed), hook: &healthy, owner: "o", until: now + 9}, "It is being sent. Should its sender have died, it is tried again after its claim's lease, " + at(now+25), 0},
		"breaker":                       {outlook{row: row(heralddb.StateResting), hook: &healthy, owner: "o", until: now + 90}, "open until " + at(now+90), now + 90},
		"resting":                       {outlook{row: row(heralddb.StateResting), hook: &healthy, owner: "o"}, "tried again from " + at(now+50) + " on", now + 50},
		"crash":                         {outlook{row: claimed(heralddb.StateQueued, now-9), hook: &healthy, owner: "o", begins: now + 7}, "Sending begins again at " + at(now+7) + ".", now + 7},
		"crash, rests longer":           {outlook{row: failed(now - 10), hook: &healthy, owner: "o", begins: now + 49}, "tried again from " + at(now+50) + " on", now + 50},
		"crash, rests shorter":          {outlook{row: failed(now - 10), hook: &healthy, owner: "o", begins: now + 51}, "Sending begins again at " + at(now+51) + ".", now + 51},
		"crash, claim ends first":       {outlook{row: row(heralddb.StateClaimed), hook: &healthy, owner: "o", begins: now + 26}, "sent again from " + at(now+26) + " on; until then every request of the hook waits", now + 26},
		"crash, claim ends last":        {outlook{row: row(heralddb.StateClaimed), hook: &healthy, owner: "o", begins: now + 24}, "sent again from " + at(now+25) + " on", now + 25},
		"crash, claim over":             {outlook{row: claimed(heralddb.StateQueued, now-25), hook: &healthy, owner: "o", begins: now + 7}, "whether it arrived is not known", now + 7},
		"crash, breaker longer":         {outlook{row: claimed(heralddb.StateQueued, now-9), hook: &healthy, owner: "o", begins: now + 7, until: now + 8}, "open until " + at(now+8), now + 8},
		"crash, breaker shorter":        {outlook{row: claimed(heralddb.StateQueued, now-9), hook: &healthy, owner: "o", begins: now + 8, until: now + 7}, "Sending begins again at " + at(now+8) + ".", now + 8},
		"due":                           {outlook{row: row(heralddb.StateDue), hook: &healthy, owner: "o"}, "tried again as soon as it is its turn", now},
		"queued":                        {outlook{row: row(heralddb.StateQueued), hook: &healthy, owner: "o"}, "sent as soon as it is its turn", now},
	} {
		tt.o.lease, tt.o.backoff = lease, backoff
		if text, from := tt.o.next(); !strings.Contains(text, tt.text) || from != tt.from {
			t.Errorf("%s: %q from %d, want %q from %d", name, text, from, tt.text, tt.from)
		}
	}
}

// Properties are somebody else's: what Phorge writes is read key by key, and
// nothing else is kept to be shown.
func TestPropertiesAreReadKeyByKey(t *testing.T) {
	p := knownProperties([]byte(`{"retry":"forever","token":"hunter2","transactionPHIDs":{"b":"B","a":"A","n":5},` +
		`"triggerPHIDs":["X",null],"silent":true,"secure":"","errorType":"http","errorCode":503}`))
	if p.Retry != "forever" || strings.Join(p.Transactions, " ") != "A B" || strings.Join(p.Triggers, " ") != "X" ||
		!set(p.Silent) || set(p.Secure) || set(p.Test) || p.Type != "http" || p.Code.String() != "503" {
		t.Errorf("%+v", p)
	}
	if p := knownProperties([]byte(`{"errorType":"http","errorCode":{},"retry":"never"}`)); p.Type != "http" || p.Retry != "never" {
		t.Errorf("an odd key takes others along: %+v", p)
	}
	for _, odd := range []string{``, `5`, `[]`, `{"errorType":7,"retry":null}`, `{"errorCode":{}}`} {
		if p := knownProperties([]byte(odd)); p.Type != "" || len(p.Transactions) != 0 {
			t.Errorf("%s: %+v", odd, p)
		}
	}
	if p := knownProperties([]byte(`{"errorType":"hook","errorCode":"uri","transactionPHIDs":"x"}`)); p.Code.String() != "uri" {
		t.Errorf("a name as code: %+v", p)
	}
}

// A row without a moment of its making has no age either.
func TestARowDatedZeroHasNoAge(t *testing.T) {
	for created, want := range map[int64]string{0: "-", 990: "1970-01-01T00:16:30Z, 10s ago"} {
		p := &requestPage{requestView: requestView{Created: at(created), now: 1000}}
		var out strings.Builder
		if err := p.write(&out); err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^Created +` + regexp.QuoteMeta(want) + `$`).MatchString(out.String()) {
			t.Errorf("%d: want %q in\n%s", created, want, out.String())
		}
	}
}
