package activities_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/internal/sourcetest"
)

// constants are the values of a type as types.go declares them, so that a new
// state without a row in the tables below is noticed.
func constants(t *testing.T, typeName string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, v := range sourcetest.Constants(t, "types.go", typeName) {
		found[v] = true
	}
	return found
}

func (w *world) row(change func(*herald.Request)) { w.rows.edit(id, change) }

func (w *world) refuse(r activities.ClaimResult) { w.gate.refusal = &r }

// claimCase is one way to a state.
type claimCase struct {
	name string
	set  func(w *world)
	want activities.ClaimState
	// wait is what the result asks for; 0 where asking again need not wait.
	wait time.Duration
}

func claimCases() []claimCase {
	return []claimCase{
		{"fresh row", func(*world) {}, activities.Won, 0},
		{"due retry", func(w *world) {
			w.row(func(r *herald.Request) { r.LastResult, r.LastEpoch, r.Modified = herald.ResultFail, start-60, start-58 })
		}, activities.Won, 0},
		{"sent by somebody", func(w *world) {
			w.row(func(r *herald.Request) { r.Status, r.LastResult = herald.StatusSent, herald.ResultOkay })
		}, activities.Finished, 0},
		{"failed by somebody", func(w *world) { w.row(func(r *herald.Request) { r.Status = herald.StatusFailed }) }, activities.Finished, 0},
		{"unknown status", func(w *world) { w.row(func(r *herald.Request) { r.Status = "odd" }) }, activities.Finished, 0},
		{"disabled hook", func(w *world) { w.rows.hook.Status = "disabled" }, activities.Misconfigured, 0},
		{"no URI", func(w *world) { w.rows.hook.URI = "" }, activities.Misconfigured, 0},
		{"not http", func(w *world) { w.rows.hook.URI = "ftp://x/" }, activities.Misconfigured, 0},
		{"control character", func(w *world) { w.rows.hook.URI = "http://x/\x01" }, activities.Misconfigured, 0},
		{"object gone", func(w *world) { w.things.object = herald.Missing }, activities.Misconfigured, 0},
		{"object is no PHID", func(w *world) { w.row(func(r *herald.Request) { r.ObjectPHID = "x" }) }, activities.Misconfigured, 0},
		{"collected", func(w *world) { w.rows.collect(id) }, activities.Collected, 0},
		{"id reused", func(w *world) { w.row(func(r *herald.Request) { r.PHID = "PHID-HWBR-other" }) }, activities.Collected, 0},
		{"hook gone", func(w *world) { w.rows.hook = nil }, activities.Untouched, 0},
		{"another hook's row", func(w *world) { w.row(func(r *herald.Request) { r.HookPHID = "PHID-HWBH-other" }) }, activities.Untouched, 0},
		{"properties no JSON", func(w *world) { w.row(func(r *herald.Request) { r.Properties = []byte("{") }) }, activities.Untouched, 0},
		{"properties a number", func(w *world) { w.row(func(r *herald.Request) { r.Properties = []byte("5") }) }, activities.Untouched, 0},
		{"list is a string", func(w *world) {
			w.row(func(r *herald.Request) { r.Properties = []byte(`{"transactionPHIDs":"x"}`) })
		}, activities.Untouched, 0},
		{"type without transactions", func(w *world) {
			w.row(func(r *herald.Request) { r.ObjectPHID = "PHID-SSSN-x" })
		}, activities.Untouched, 0},
		{"no key", func(w *world) { w.rows.hook.HMACKey = nil }, activities.Untouched, 0},
		{"no room for a claim", func(w *world) {
			w.row(func(r *herald.Request) { r.Created, r.Modified = 4294967295, 4294967295 })
		}, activities.Untouched, 0},
		{"no room for a configuration failure", func(w *world) {
			w.rows.hook.Status = "disabled"
			w.row(func(r *herald.Request) { r.Created, r.Modified = 4294967295, 4294967295 })
		}, activities.Untouched, 0},
		{"claimed in the far future", func(w *world) { w.row(func(r *herald.Request) { r.Modified = start + 24*3600 }) }, activities.Untouched, 0},
		{"owned elsewhere", func(w *world) { w.refuse(activities.ClaimResult{State: activities.Elsewhere, Queue: "q"}) }, activities.Elsewhere, 0},
		{"owned by nobody", func(w *world) {
			w.refuse(activities.ClaimResult{State: activities.Unowned, Wait: time.Second})
		}, activities.Unowned, time.Second},
		{"paused", func(w *world) { w.pauses.set[hookPHID] = herald.Pause{By: "op", Reason: "upgrade"} }, activities.Paused, 0},
		{"breaker", func(w *world) { w.rows.evidence = start - 100 }, activities.BreakerOpen, 201 * time.Second},
		{"breaker by a failure from the future", func(w *world) { w.rows.evidence = start + 1<<30 }, activities.BreakerOpen, 10 * time.Minute},
		{"resting", func(w *world) {
			w.row(func(r *herald.Request) { r.LastResult, r.LastEpoch, r.Modified = herald.ResultFail, start-20, start-18 })
		}, activities.Resting, 40 * time.Second},
		{"resting since the future", func(w *world) {
			w.row(func(r *herald.Request) { r.LastResult, r.LastEpoch, r.Modified = herald.ResultFail, start+1<<30, start })
		}, activities.Resting, time.Minute},
		{"slot taken", func(w *world) { w.gate.taken = 1 }, activities.Busy, 0},
		{"claimed by another", func(w *world) { w.row(func(r *herald.Request) { r.Modified = start + 1 }) }, activities.Leased, 31 * time.Second},
		{"retry claimed by another", func(w *world) {
			w.row(func(r *herald.Request) { r.LastResult, r.LastEpoch, r.Modified = herald.ResultFail, start-90, start-87 })
		}, activities.Leased, 30 * time.Second},
		{"claimed an hour ahead", func(w *world) { w.row(func(r *herald.Request) { r.Modified = start + 3600 }) }, activities.Leased, 30 * time.Second},
		{"another was faster", func(w *world) { w.rows.onLoad(w.foreignClaim) }, activities.Lost, 0},
		{"a setting's failure came too late", func(w *world) {
			w.rows.hook.Status = "disabled"
			w.rows.onLoad(w.foreignClaim)
		}, activities.Lost, 0},
		{"the claim's answer took too long", func(w *world) {
			w.rows.onClaim(func() { w.pass(6 * time.Second) })
		}, activities.Lost, 0},
		{"collected before a setting's failure", func(w *world) {
			w.rows.hook.Status = "disabled"
			w.rows.onLoad(func() { w.rows.collect(id) })
		}, activities.Collected, 0},
	}
}

// Every state is reached, and each but Won gives the slot back, tells the feed,
// sends nothing, and leaves the row as it was unless it says otherwise.
func TestClaimReachesEveryState(t *testing.T) {
	missing := constants(t, "ClaimState")
	for _, tt := range claimCases() {
		delete(missing, string(tt.want))
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.set(w)
			taken := w.gate.taken
			before, there := w.rows.find(id)
			res := w.claims(tt.want)
			if res.Wait != tt.wait || res.State != activities.Won && res.State != activities.Elsewhere &&
				res.State != activities.Unowned && res.Reason == "" {
				t.Errorf("result %+v, want a wait of %s and a reason", res, tt.wait)
			}
			w.posted(0)
			if n := w.counts.of(tt.want); n != 1 {
				t.Errorf("counted %d times", n)
			}
			if tt.want == activities.Won {
				w.wonRight(res)
				return
			}
			if n := w.gate.slots(); n != taken {
				t.Errorf("%d slots taken, want %d", n, taken)
			}
			if e := w.gate.ends(); len(e) != 1 || e[0].State != tt.want || e[0].Ref != ref() || e[0].Wait != tt.wait {
				t.Errorf("told the feed %+v", e)
			}
			if tt.want == activities.Misconfigured {
				w.misconfiguredRight(res)
			} else if after, still := w.rows.find(id); there && still && tt.want != activities.Lost && !reflect.DeepEqual(after, before) {
				t.Errorf("the row went from %+v to %+v", before, after)
			}
		})
	}
	if len(missing) > 0 {
		t.Errorf("no case for %v", missing)
	}
}

func (w *world) wonRight(res activities.ClaimResult) {
	w.Helper()
	if r := w.rows.row(id); res.Version != r.Modified || res.Queue != "waybill/me" || !res.Fast || w.gate.slots() != 1 {
		w.Errorf("won %+v on %+v, %d slots", res, r, w.gate.slots())
	}
	if len(w.gate.ends()) != 0 {
		w.Error("the feed was told of an end before the send")
	}
}

func (w *world) misconfiguredRight(res activities.ClaimResult) {
	w.Helper()
	r := w.rows.row(id)
	if r.Status != herald.StatusFailed || r.LastResult != herald.ResultNone || r.LastEpoch != 0 ||
		res.Row == nil || res.Row.Status != herald.StatusFailed || res.Row.ErrorType != "hook" {
		w.Errorf("result %+v, row %+v", res.Row, r)
	}
	p, err := herald.ParseProperties(r.Properties)
	if err != nil || string(p.WithError(herald.ErrorHook, herald.NameCode(res.Row.ErrorCode))) != string(r.Properties) {
		w.Errorf("properties %s (%v)", r.Properties, err)
	}
	if w.counts.outcomes()["config"] != 1 || len(w.lines("request failed by its hook's settings")) != 1 {
		w.Error("a configuration failure is counted and logged once")
	}
}

// flaws stand in Phorge's order of checks: of two, the first decides.
func flaws() []claimCase {
	retried := func(w *world, age int64) {
		w.row(func(r *herald.Request) { r.LastResult, r.LastEpoch = herald.ResultFail, start-age })
	}
	return []claimCase{
		{"finished", func(w *world) { w.row(func(r *herald.Request) { r.Status = herald.StatusSent }) }, activities.Finished, 0},
		{"hook gone", func(w *world) { w.rows.hook = nil }, activities.Untouched, 0},
		{"bad properties", func(w *world) { w.row(func(r *herald.Request) { r.Properties = []byte("5") }) }, activities.Untouched, 0},
		{"disabled", func(w *world) { w.set(func(h *herald.Hook) { h.Status = "disabled" }) }, activities.Misconfigured, 0},
		{"uri", func(w *world) { w.set(func(h *herald.Hook) { h.URI = "x" }) }, activities.Misconfigured, 0},
		{"object", func(w *world) { w.things.object = herald.Missing }, activities.Misconfigured, 0},
		{"no key", func(w *world) { w.set(func(h *herald.Hook) { h.HMACKey = nil }) }, activities.Untouched, 0},
		{"unowned", func(w *world) { w.refuse(activities.ClaimResult{State: activities.Unowned}) }, activities.Unowned, 0},
		{"leased", func(w *world) { w.row(func(r *herald.Request) { r.Modified = start + 10 }) }, activities.Leased, 0},
		{"paused", func(w *world) { w.pauses.set[hookPHID] = herald.Pause{} }, activities.Paused, 0},
		{"breaker", func(w *world) { w.rows.evidence = start }, activities.BreakerOpen, 0},
		{"resting", func(w *world) { retried(w, 1) }, activities.Resting, 0},
	}
}

// An order is told whole, and without a reason that nobody gave.
func TestAPauseIsToldWithItsReasonIfThereIsOne(t *testing.T) {
	for want, p := range map[string]herald.Pause{
		"Paused by jane":                      {By: "jane"},
		"Paused by jane: lunch":               {By: "jane", Reason: "lunch"},
		"Released to Phorge by jane":          {By: "jane", Released: true},
		"Released to Phorge by jane: upgrade": {By: "jane", Reason: "upgrade", Released: true},
	} {
		w := newWorld(t)
		w.pauses.set[hookPHID] = p
		res, err := w.Claim(t.Context(), activities.ClaimInput{Ref: ref(), Attempt: 1})
		if err != nil || res.Reason != want {
			t.Errorf("%q, %v, want %q", res.Reason, err, want)
		}
	}
}

func (w *world) set(change func(*herald.Hook)) {
	if w.rows.hook != nil {
		change(w.rows.hook)
	}
}

func TestTheFirstFlawDecides(t *testing.T) {
	all := flaws()
	for i, first := range all {
		for _, second := range all[i+1:] {
			t.Run(first.name+" before "+second.name, func(t *testing.T) {
				w := newWorld(t)
				second.set(w)
				first.set(w)
				want := first.want
				if want == activities.Misconfigured && second.want == activities.Leased {
					// Its claimer may be about to record a 2xx.
					want = activities.Leased
				}
				res := w.claims(want)
				if want == activities.Misconfigured && res.Row.ErrorCode != first.name {
					t.Errorf("code %q, want %q", res.Row.ErrorCode, first.name)
				}
			})
		}
	}
}

func TestNowSkipsTheBackoffAndNothingElse(t *testing.T) {
	for _, tt := range flaws() {
		w := newWorld(t)
		tt.set(w)
		want := tt.want
		if want == activities.Resting {
			want = activities.Won
		}
		res, err := w.Claim(t.Context(), activities.ClaimInput{Ref: ref(), Attempt: 3, Now: true})
		if err != nil || res.State != want {
			t.Errorf("%s: %+v, %v, want %s", tt.name, res, err, want)
		}
		if again := w.gate.again; len(again) != 1 || !again[0] {
			t.Errorf("%s: asked for the slot as %v, want as a retry", tt.name, again)
		}
	}
}

// A database that cannot be asked is an error: nothing is sent, the slot is
// given back, and asking again is safe.
func TestClaimFailsClosed(t *testing.T) {
	for _, tt := range []struct {
		point string
		set   func(w *world)
	}{
		{"load before", func(*world) {}},
		{"object before", func(*world) {}},
		{"transactions before", func(w *world) {
			w.row(func(r *herald.Request) { r.Properties = []byte(`{"transactionPHIDs":["a"]}`) })
		}},
		{"paused before", func(*world) {}},
		{"claim before", func(*world) {}},
		{"finish before", func(w *world) { w.rows.hook.Status = "disabled" }},
	} {
		t.Run(tt.point, func(t *testing.T) {
			w := newWorld(t)
			tt.set(w)
			before := w.rows.row(id)
			w.faults.set(tt.point, 1)
			res, err := w.ask()
			if !errors.Is(err, errFault) || res.State != "" {
				t.Errorf("claim %+v, %v", res, err)
			}
			w.free()
			w.posted(0)
			if e := w.gate.ends(); len(e) != 1 || e[0].State != "" {
				t.Errorf("told the feed %+v", e)
			}
			if after := w.rows.row(id); after.Modified != before.Modified || after.Status != before.Status {
				t.Errorf("the row went from %+v to %+v", before, after)
			}
			if res, err = w.ask(); err != nil || res.State != activities.Won && res.State != activities.Misconfigured {
				t.Errorf("asked again: %+v, %v", res, err)
			}
		})
	}
}

// A configuration failure whose acknowledgement was lost is found in the row.
func TestLostAcknowledgementOfAConfigurationFailure(t *testing.T) {
	w := newWorld(t)
	w.rows.hook.Status = "disabled"
	w.faults.set("finish after", 1)
	if _, err := w.ask(); !errors.Is(err, errFault) {
		t.Fatalf("claim: %v", err)
	}
	res := w.claims(activities.Finished)
	if res.Row == nil || res.Row.Status != herald.StatusFailed {
		t.Errorf("row %+v", res.Row)
	}
}

// A claim that stands without a known version is not sent, and reported.
func TestAClaimWithoutItsVersionIsNotSent(t *testing.T) {
	w := newWorld(t)
	w.faults.set("claim's version", 1)
	if res := w.claims(activities.Untouched); res.Reason != herald.ErrNoVersion.Error() {
		t.Errorf("reason %q", res.Reason)
	}
	w.free()
	w.posted(0)
}
