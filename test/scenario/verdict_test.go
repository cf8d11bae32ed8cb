package scenario_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// at is a moment of the made-up run, in milliseconds.
func at(ms int) time.Time { return time.UnixMilli(1_000_000_000_000 + int64(ms)) }

// call is a call for a row of hook "h", signed.
func call(row string, from, to, status int) scenario.Call {
	body := []byte("body of " + row)
	mac := hmac.New(sha256.New, []byte("key"))
	mac.Write(body)
	return scenario.Call{
		Hook: "h", Row: row, Caller: scenario.ByWaybill, PID: 1, Start: at(from), End: at(to), Status: status,
		Signature: hex.EncodeToString(mac.Sum(nil)), Body: body,
	}
}

func claim(row string, ms int) scenario.Write {
	return scenario.Write{Row: row, At: at(ms), Before: "queued", After: "queued"}
}

func result(row string, ms int, status string) scenario.Write {
	return scenario.Write{Row: row, At: at(ms), Before: "queued", After: status, Result: true}
}

// clean is a run of four rows without a fault of Waybill's: one sent at once,
// one retried after a failure, one failed for good, and one whose caller (2)
// was killed during the call and which was sent again after the lease.
func clean() scenario.Evidence {
	fails := scenario.Planned{PHID: "d", Hook: "h", Behaviour: scenario.Failing, Retry: devstack.RetryNever}
	e := scenario.Evidence{
		Rules: scenario.Rules{Lease: 7 * time.Second, Backoff: 3 * time.Second, WriteWithin: time.Second},
		Rows:  []scenario.Planned{planned("a"), planned("b"), planned("c"), fails},
		Found: map[string]devstack.Row{"a": sent(), "b": sent(), "c": sent(), "d": {Status: "failed", LastResult: "fail"}},
		Keys:  map[string]string{"h": "key"},
		Calls: []scenario.Call{
			call("a", 100, 200, 200),
			call("b", 300, 400, 500),
			call("b", 3500, 3600, 200),
			call("c", 4000, 4100, 200),
			call("c", 12000, 12100, 200),
			call("d", 13000, 13100, 500),
		},
		Writes: []scenario.Write{
			claim("a", 50), result("a", 210, "sent"),
			claim("b", 250), result("b", 410, "queued"), claim("b", 3450), result("b", 3610, "sent"),
			claim("c", 3950), claim("c", 11950), result("c", 12110, "sent"),
			claim("d", 12950), result("d", 13110, "failed"),
		},
		Faults: []scenario.Fault{{Kind: scenario.Killed, Who: "serve-2", PID: 2, From: at(4105), To: at(4110)}},
	}
	e.Calls[3].PID = 2
	return e
}

func planned(phid string) scenario.Planned {
	return scenario.Planned{PHID: phid, Hook: "h", Behaviour: scenario.Fast, Retry: devstack.RetryForever}
}

func sent() devstack.Row { return devstack.Row{Status: "sent", LastResult: "okay"} }

func TestACleanRunIsFoundClean(t *testing.T) {
	v := clean().Judge()
	if len(v.Wrong) > 0 {
		t.Errorf("found %q", v.Wrong)
	}
	if v.Calls != 6 || v.Retries != 1 || v.Unknown != 1 || len(v.Repeats) != 1 || v.Repeats[0].Gap != 8*time.Second {
		t.Errorf("verdict %+v", v)
	}
	if !strings.Contains(v.Repeats[0].Why, "SIGKILL of serve-2") {
		t.Errorf("explained by %q", v.Repeats[0].Why)
	}
}

// Each kind of fault of Waybill's, made by hand in the clean run, is found and
// called by its name; nothing else is found.
func TestEachKindOfFaultIsFound(t *testing.T) {
	tests := map[string]struct {
		spoil func(*scenario.Evidence)
		want  []string // beginnings of what is wrong
	}{
		"a row was never called": {func(e *scenario.Evidence) {
			e.Rows = append(e.Rows, planned("x"))
			e.Found["x"] = devstack.Row{Status: "queued", LastResult: "none"}
		}, []string{"missing: row x"}},
		"a delivered row is left queued": {func(e *scenario.Evidence) {
			e.Found["a"] = devstack.Row{Status: "queued", LastResult: "none"}
		}, []string{"end: row a"}},
		"a delivered row is said to have failed, where some calls are not read": {func(e *scenario.Evidence) {
			e.Rows[0].Behaviour, e.Rows[0].Retry = scenario.Slamming, devstack.RetryNever
			e.Found["a"] = devstack.Row{Status: "failed", LastResult: "fail"}
			e.Writes[1].After = "failed"
		}, []string{"end: row a"}},
		"a failure is called delivered": {func(e *scenario.Evidence) { e.Found["d"] = sent() }, []string{"end: row d"}},
		"a row that is to be tried forever is given up": {func(e *scenario.Evidence) {
			e.Calls[2].Status = 500
			e.Found["b"] = devstack.Row{Status: "failed", LastResult: "fail"}
		}, []string{"end: row b"}},
		"two calls at once for one hook": {func(e *scenario.Evidence) { e.Calls[0].End = at(301) }, []string{"overlap: h"}},
		"a call within a long one": {func(e *scenario.Evidence) {
			e.Calls[0].End = at(3550) // around the first for b, which ends before it, and into the second
		}, []string{"overlap: h", "overlap: h"}},
		"a call that does not end": {func(e *scenario.Evidence) { e.Calls[4].End = time.Time{} }, []string{"overlap: h"}},
		"a wrong signature":        {func(e *scenario.Evidence) { e.Calls[1].Signature = e.Calls[0].Signature }, []string{"signature: the one of row b"}},
		"a body that was changed":  {func(e *scenario.Evidence) { e.Calls[1].Body = []byte("other") }, []string{"signature: the one of row b"}},
		"a row that nobody queued": {func(e *scenario.Evidence) {
			e.Calls = append(e.Calls, call("z", 14000, 14100, 200))
		}, []string{"stranger: h"}},
		"a row at another hook": {func(e *scenario.Evidence) {
			e.Calls[5].Hook = "other"
			e.Keys["other"] = "key"
		}, []string{"stranger: other"}},
		"a row sent again after its success was written": {func(e *scenario.Evidence) {
			e.Calls = append(e.Calls, call("a", 20000, 20100, 200))
			e.Writes = append(e.Writes, claim("a", 19950))
		}, []string{"double: row a"}},
		"the same under the claim it had": {func(e *scenario.Evidence) {
			e.Calls = append(e.Calls, call("a", 20000, 20100, 200))
		}, []string{"claim: call 2 for row a", "double: row a"}},
		"a call without a claim": {func(e *scenario.Evidence) {
			e.Writes = slices.DeleteFunc(e.Writes, func(w scenario.Write) bool { return w == claim("d", 12950) })
		}, []string{"claim: call 1 for row d"}},
		"a retry before the backoff": {func(e *scenario.Evidence) {
			e.Calls[2] = call("b", 2200, 2300, 200)
			e.Writes[4], e.Writes[5] = claim("b", 2150), result("b", 2310, "sent")
		}, []string{"early: row b of h was retried"}},
		"an unknown outcome repeated before the lease": {func(e *scenario.Evidence) {
			e.Calls[4] = call("c", 9900, 9950, 200)
			e.Writes[7], e.Writes[8] = claim("c", 9850), result("c", 9960, "sent")
		}, []string{"early: row c of h was claimed again"}},
		"a repeat that nothing explains": {func(e *scenario.Evidence) { e.Faults = nil }, []string{"unexplained: row c"}},
		"a repeat beside somebody else's accident": {func(e *scenario.Evidence) {
			e.Faults[0].PID = 3
		}, []string{"unexplained: row c"}},
		"a repeat long after the answer": {func(e *scenario.Evidence) {
			e.Faults[0].From, e.Faults[0].To = at(5200), at(5210)
		}, []string{"unexplained: row c"}},
		"a row that Phorge had failed was called under a later claim": {func(e *scenario.Evidence) {
			e.Rows[0].MayFail = true
			e.Found["a"] = devstack.Row{Status: "failed", LastResult: "none"}
			e.Writes[1].After, e.Writes[1].Uncalled = "failed", true
			e.Writes = append(e.Writes, claim("a", 19950))
			e.Calls = append(e.Calls, call("a", 20000, 20100, 200))
		}, []string{"double: row a"}},
		"Phorge called for a finished row": {func(e *scenario.Evidence) {
			phorge := call("a", 20000, 20100, 200)
			phorge.Caller = scenario.ByPhorge
			e.Calls = append(e.Calls, phorge)
		}, []string{"double: row a"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := clean()
			tt.spoil(&e)
			got := e.Judge().Wrong
			if !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
				t.Errorf("found %q\nwant  %q", got, tt.want)
			}
		})
	}
}

// What is no fault of Waybill's, and looks like one.
func TestWhatIsAllowedIsNotFound(t *testing.T) {
	tests := map[string]func(*scenario.Evidence){
		"Phorge repeats a row whose lock was lost at its write": func(e *scenario.Evidence) {
			phorge := call("c", 12500, 12600, 200)
			phorge.Caller = scenario.ByPhorge
			e.Calls = slices.Insert(e.Calls, 5, phorge)
			e.Faults = append(e.Faults, scenario.Fault{Kind: scenario.Killed, PID: 1, From: at(12200), To: at(12210)})
		},
		"Phorge repeats a row that was written when its process was dead": func(e *scenario.Evidence) {
			phorge := call("c", 12500, 12600, 200)
			phorge.Caller = scenario.ByPhorge
			e.Calls = slices.Insert(e.Calls, 5, phorge)
			e.Faults = append(e.Faults, scenario.Fault{Kind: scenario.Killed, PID: 1, From: at(11900), To: at(11990)})
		},
		"a body that broke off": func(e *scenario.Evidence) {
			cut := call("", 20000, 20100, 0)
			cut.Partial, cut.Body = true, nil
			e.Calls = append(e.Calls, cut)
		},
		"a row that is tried forever and never delivered": func(e *scenario.Evidence) {
			e.Rows[0].Behaviour = scenario.Hang
			e.Found["a"] = devstack.Row{Status: "queued", LastResult: "fail"}
			e.Calls[0].Status = 0
			e.Writes[1].After = "queued"
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

func TestSavesOnFinishedRowsAreListed(t *testing.T) {
	e := clean()
	e.Writes = append(e.Writes, scenario.Write{Row: "a", At: at(20000), Before: "sent", After: "failed", Result: true})
	if got := e.Judge().Overwrites; len(got) != 1 || !strings.Contains(got[0], "row a of h, sent, made failed") {
		t.Errorf("listed %q", got)
	}
}
