package scenario

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
)

// Rules are what the processes under test were told. A zero rule is not judged.
type Rules struct {
	// Lease and Backoff are Waybill's settings.
	Lease, Backoff time.Duration
	// WriteWithin is how long after an answer a process may still be about to
	// write it: a fault within that time can explain that it never did.
	WriteWithin time.Duration
	// UseWithin is how long after its claim a call may begin: what is then left of
	// the lease covers a whole exchange and its write.
	UseWithin time.Duration
}

// Evidence is everything a run leaves behind.
type Evidence struct {
	Rules  Rules
	Rows   []Planned
	Found  map[string]devstack.Row // by PHID
	Keys   map[string]string       // hooks' keys, by name
	Calls  []Call                  // in order of their beginning
	Writes []Write                 // in order
	Faults []Fault
	// Kept are the successes that stand in workflow histories.
	Kept []Kept
	// Touched are the rows that the test has saved as somebody else may do, and when.
	Touched map[string]time.Time
	// Saved are the rows that the player of Phorge's worker has saved.
	Saved map[string]bool
	// Stepped are the moments at which the database's clock was moved.
	Stepped []time.Time
}

// Repeat is a second call for a row whose first one's outcome nobody knew.
type Repeat struct {
	Row, Hook     string
	First, Second Call
	Gap           time.Duration // from one claim to the next
	Why           string        // the fault that explains it
}

// Verdict is what is wrong with a run, in words, and what is worth knowing.
type Verdict struct {
	Wrong []string
	// Repeats are the calls after an unknown outcome, Retries how many followed
	// a failure that stood in the row.
	Repeats []Repeat
	Retries int
	// Calls is how many there were; Unknown how many left no result.
	Calls, Unknown int
	// Overwrites are saves of Phorge's on rows that were finished already. Waybill
	// makes none.
	Overwrites []string
}

// Gather collects the evidence of a run that is over.
func Gather(t testing.TB, l *Load, j *Journal, f *Fleet, rules Rules) Evidence {
	t.Helper()
	e := Evidence{
		Rules: rules, Rows: l.Rows(), Found: l.Found(t), Keys: map[string]string{},
		Calls: l.witness.Calls(), Writes: j.Writes(t), Faults: f.Faults(), Stepped: j.Stepped(),
	}
	for _, h := range l.Hooks() {
		e.Keys[h.Name] = h.Key
	}
	return e
}

// Judge reads the evidence.
func (e Evidence) Judge() Verdict {
	v := Verdict{Calls: len(e.Calls)}
	v.strangers(e)
	v.signatures(e)
	v.overlaps(e)
	calls, writes := e.byRow()
	v.keptAlready(e, calls)
	for _, p := range e.Rows {
		s := story{Planned: p, found: e.Found[p.PHID], calls: calls[p.PHID], writes: writes[p.PHID], evidence: e}
		v.end(s)
		v.unknown(s)
		v.repeats(s)
		v.afterTheEnd(s)
		v.fence(s)
	}
	return v
}

// Report logs what is worth knowing and fails the test for what is wrong.
func (v Verdict) Report(t testing.TB) {
	t.Helper()
	t.Logf("verdict: %d calls, %d retries of failures, %d unknown outcomes, %d repeats of them, %d finished rows overwritten",
		v.Calls, v.Retries, v.Unknown, len(v.Repeats), len(v.Overwrites))
	for _, r := range v.Repeats {
		t.Logf("repeated: %s of %s by %s %v after the claim before, %s", r.Row, r.Hook, r.Second.Caller, r.Gap, r.Why)
	}
	for _, o := range v.Overwrites {
		t.Logf("overwritten: %s", o)
	}
	for i, wrong := range v.Wrong {
		if i == wrongShown {
			t.Errorf("... and %d more", len(v.Wrong)-i)
			return
		}
		t.Error(wrong)
	}
}

// wrongShown keeps a run that went wrong altogether readable.
const wrongShown = 20

func (v *Verdict) wrong(format string, args ...any) {
	v.Wrong = append(v.Wrong, fmt.Sprintf(format, args...))
}

// byRow sorts calls and writes by the row they are about. Bodies that broke off
// are about none.
func (e Evidence) byRow() (calls map[string][]Call, writes map[string][]Write) {
	calls, writes = map[string][]Call{}, map[string][]Write{}
	for _, c := range e.Calls {
		if !c.Partial {
			calls[c.Row] = append(calls[c.Row], c)
		}
	}
	for _, w := range e.Writes {
		writes[w.Row] = append(writes[w.Row], w)
	}
	return calls, writes
}

// strangers: calls for rows that nobody queued, or at another row's hook.
func (v *Verdict) strangers(e Evidence) {
	hooks := map[string]string{}
	for _, p := range e.Rows {
		hooks[p.PHID] = p.Hook
	}
	for _, c := range e.Calls {
		if !c.Partial && hooks[c.Row] != c.Hook {
			v.wrong("stranger: %s was called for %q, which is a row of %q", c.Hook, c.Row, hooks[c.Row])
		}
	}
}

// signatures: each of Waybill's bodies carries its own. The player signs none.
func (v *Verdict) signatures(e Evidence) {
	for _, c := range e.Calls {
		if c.Caller == ByWaybill && !c.Partial && c.Signature != sign(e.Keys[c.Hook], c.Body) {
			v.wrong("signature: the one of row %s at %s is not that of its body", c.Row, c.Hook)
		}
	}
}

// sign is written out, to depend on none of Waybill's code.
func sign(key string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// overlaps: two calls in progress at once for one hook, whoever makes them, but
// for the stated limits. A call without an end is in progress still.
func (v *Verdict) overlaps(e Evidence) {
	latest := map[string]Call{} // the one that ends last so far
	for _, c := range e.Calls {
		before, seen := latest[c.Hook]
		if seen && (before.End.IsZero() || before.End.After(c.Start)) && !e.limits(before, c) {
			v.wrong("overlap: %s was called for %s by %s (%d) from %s to %s, and for %s by %s (%d) at %s", c.Hook,
				before.Row, before.Caller, before.PID, clock(before.Start), clock(before.End), c.Row, c.Caller, c.PID, clock(c.Start))
		}
		if !seen || !before.End.IsZero() && (c.End.IsZero() || c.End.After(before.End)) {
			latest[c.Hook] = c
		}
	}
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05.000") }

// end: the row stands where its last call has brought it, unless it was
// collected or failed for its hook's settings meanwhile.
func (v *Verdict) end(s story) {
	got := s.found.Status + "/" + s.found.LastResult
	if s.Collected || s.MayFail && got == "failed/none" || s.overwritten() {
		return
	}
	if len(s.calls) == 0 {
		// Its only calls broke off before anybody knew which row they were for; if
		// it was to be tried for ever, the last was Phorge's.
		if s.Behaviour == Slamming && got == "failed/fail" {
			return
		}
		v.wrong("missing: row %s of %s was never called; it is %q", s.PHID, s.Hook, got)
		return
	}
	if want := s.rightEnds(); !slices.Contains(want, got) {
		v.wrong("end: row %s of %s is %q after %d calls, the last answered with %d; want %s",
			s.PHID, s.Hook, got, len(s.calls), s.calls[len(s.calls)-1].Status, strings.Join(want, " or "))
	}
}
