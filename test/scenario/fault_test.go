package scenario_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// Faults of Waybill's that only a campaign can see: beside somebody else's saves,
// in histories, and in how long after its claim a call is made.
func TestFaultsBesideOthersAreFound(t *testing.T) {
	tests := map[string]struct {
		spoil func(*scenario.Evidence)
		want  []string
	}{
		"a call long after its claim": {func(e *scenario.Evidence) {
			e.Rules.UseWithin = 2 * time.Second
			e.Writes[0] = claim("a", -5000)
		}, []string{"late: call 1 for row a"}},
		"a success that stood in the history is sent again": {func(e *scenario.Evidence) {
			e.Kept = []scenario.Kept{{Row: "c", At: at(4200)}}
		}, []string{"double: the success of row c stood in its history"}},
		"a result on a row that was saved since its claim": {func(e *scenario.Evidence) {
			e.Touched = map[string]time.Time{"a": at(150)}
		}, []string{"fence: a result was written on row a"}},
		"a finished row is changed, not by Phorge": {func(e *scenario.Evidence) {
			e.Saved = map[string]bool{"b": true}
			e.Writes = append(e.Writes, scenario.Write{Row: "a", At: at(20000), Before: "sent", After: "failed", Result: true})
		}, []string{"overwritten: row a"}},
		"an overlap long after the process went on": {func(e *scenario.Evidence) {
			e.Calls[4].End = at(13050)
			e.Faults = append(e.Faults, scenario.Fault{Kind: scenario.Stopped, PID: 1, From: at(8000), To: at(9000)})
		}, []string{"overlap: h"}},
		"an overlap with Phorge long after the lock was lost": {func(e *scenario.Evidence) {
			phorge := call("c", 12050, 12090, 200)
			phorge.Caller = scenario.ByPhorge
			e.Calls = slices.Insert(e.Calls, 5, phorge)
		}, []string{"overlap: h", "unexplained: row c"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := clean()
			tt.spoil(&e)
			if got := e.Judge().Wrong; !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
				t.Errorf("found %q\nwant  %q", got, tt.want)
			}
		})
	}
}

// The stated limits, and what others may do to a row.
func TestTheStatedLimitsAreAllowed(t *testing.T) {
	tests := map[string]func(*scenario.Evidence){
		"a call in time": func(e *scenario.Evidence) { e.Rules.UseWithin = 2 * time.Second },
		"a process that stood still during its call overlaps with its successor": func(e *scenario.Evidence) {
			e.Calls[3].End = at(12050)
			e.Faults = append(e.Faults, scenario.Fault{Kind: scenario.Stopped, PID: 2, From: at(4050), To: at(12040)})
		},
		"a process that goes on repeats what its successor delivered": func(e *scenario.Evidence) {
			late := call("c", 12500, 12600, 200)
			late.PID = 2
			e.Calls = slices.Insert(e.Calls, 5, late)
			e.Writes = slices.Insert(e.Writes, 9, claim("c", 12400)) // a fake: that it had none is another rule
			e.Faults = append(e.Faults, scenario.Fault{Kind: scenario.Stopped, PID: 2, From: at(4050), To: at(12450)})
		},
		"Phorge calls beside an owner that does not know yet": func(e *scenario.Evidence) {
			phorge := call("c", 12050, 12080, 200)
			phorge.Caller = scenario.ByPhorge
			e.Calls = slices.Insert(e.Calls, 5, phorge)
			e.Faults = append(e.Faults, scenario.Fault{Kind: scenario.Cut, PID: 1, From: at(12010), To: at(12010)})
		},
		"a retry is early by a clock that was moved": func(e *scenario.Evidence) {
			e.Calls[2] = call("b", 1500, 1600, 200)
			e.Writes[4], e.Writes[5] = claim("b", 1450), result("b", 1610, "sent")
			e.Stepped = []time.Time{at(1000)}
		},
		"a row was collected under way": func(e *scenario.Evidence) {
			e.Rows[0].Collected = true
			delete(e.Found, "a")
		},
		"a row was failed for its hook's settings": func(e *scenario.Evidence) {
			e.Rows[0].MayFail = true
			e.Found["a"] = devstack.Row{Status: "failed", LastResult: "none"}
		},
		"a row that was saved by somebody else is sent again": func(e *scenario.Evidence) {
			e.Faults, e.Touched = nil, map[string]time.Time{"c": at(4150)}
		},
		"the last call of a row that is not to be retried was not read": func(e *scenario.Evidence) {
			e.Rows[0].Behaviour, e.Rows[0].Retry = scenario.Slamming, devstack.RetryNever
			e.Found["a"] = devstack.Row{Status: "failed", LastResult: "fail"}
			e.Touched = map[string]time.Time{"a": at(60)}
			e.Writes[1] = claim("a", 9000)
			e.Writes = slices.Insert(e.Writes, 2, result("a", 9010, "failed"))
		},
		"Phorge's last call of such a row was not read": func(e *scenario.Evidence) {
			e.Rows[0].Behaviour, e.Rows[0].Retry = scenario.Slamming, devstack.RetryNever
			e.Found["a"] = devstack.Row{Status: "failed", LastResult: "fail"}
			e.Saved = map[string]bool{"a": true}
			e.Writes[1] = result("a", 9010, "failed")
		},
		"Phorge overwrites with what its call came to": func(e *scenario.Evidence) {
			e.Saved = map[string]bool{"a": true}
			e.Found["a"] = devstack.Row{Status: "failed", LastResult: "fail"}
			e.Writes = append(e.Writes, scenario.Write{Row: "a", At: at(20000), Before: "sent", After: "failed", Result: true})
		},
		"Phorge fails a row between its claim and its call": func(e *scenario.Evidence) {
			e.Rows[0].MayFail = true
			e.Found["a"] = devstack.Row{Status: "failed", LastResult: "none"}
			e.Writes[1] = scenario.Write{Row: "a", At: e.Calls[0].Start.Add(-time.Millisecond), Before: "queued", After: "failed", Result: true, Uncalled: true}
		},
		"a row that was saved by somebody else is failed by Phorge": func(e *scenario.Evidence) {
			e.Rows[0].MayFail, e.Touched = true, map[string]time.Time{"a": e.Writes[0].At.Add(time.Millisecond)}
			e.Found["a"] = devstack.Row{Status: "failed", LastResult: "none"}
			e.Writes[1].After, e.Writes[1].Uncalled = "failed", true
		},
		"Phorge overwrites": func(e *scenario.Evidence) {
			e.Saved = map[string]bool{"a": true}
			e.Writes = append(e.Writes, scenario.Write{Row: "a", At: at(20000), Before: "sent", After: "failed", Result: true})
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			e := clean()
			change(&e)
			if got := e.Judge().Wrong; len(got) > 0 {
				t.Errorf("found %q", got)
			}
		})
	}
}
