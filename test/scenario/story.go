package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"waybill/internal/devstack"
)

// story is all that is known of one row.
type story struct {
	Planned
	found    devstack.Row
	calls    []Call
	writes   []Write
	evidence Evidence
}

// secondsOfTheDatabase is how much earlier than its time something may come
// because the database counts in whole seconds.
const secondsOfTheDatabase = time.Second

// phorgeLooksFor is how long after a write of Waybill's Phorge may still send
// that row when the lock is lost: it looks at the row before it asks for the
// lock, and not again.
const phorgeLooksFor = 5 * time.Second

// rightEnds are the ends that the last call allows, and the one before it where
// both may have been under way at once, or a later one may not have been read.
func (s story) rightEnds() []string {
	last := len(s.calls) - 1
	ends := s.endsOf(s.calls[last])
	if s.unread(last) && s.Retry != devstack.RetryForever {
		ends = append(ends, "failed/fail")
	}
	if last > 0 && s.evidence.limits(s.calls[last-1], s.calls[last]) {
		ends = append(ends, s.endsOf(s.calls[last-1])...)
	}
	return ends
}

// endsOf are the ends that a call may have brought a row to.
func (s story) endsOf(last Call) []string {
	switch {
	case s.Endless() && last.Caller == ByWaybill:
		return []string{"queued/fail", "queued/none"}
	case last.OK():
		return []string{"sent/okay"}
	case s.Retry == devstack.RetryForever && last.Caller == ByWaybill:
		return []string{"(a row that is tried until it is sent)"}
	}
	return []string{"failed/fail"}
}

// unread says that there was a result of a later call than that, of a receiver that
// hangs up on some callers before it has read which row they call for: Waybill has
// claimed the row again for it, Phorge needs no claim.
func (s story) unread(i int) bool {
	claimed := s.evidence.Saved[s.PHID]
	for _, w := range s.writes {
		if w.At.After(s.calls[i].End) && s.Behaviour == Slamming {
			if claimed && w.Result && !w.Uncalled {
				return true
			}
			claimed = claimed || !w.Result
		}
	}
	return false
}

// overwritten says that the last save was Phorge's, of a finished row.
func (s story) overwritten() bool {
	n := len(s.writes)
	return n > 0 && s.writes[n-1].Before != queued && s.evidence.Saved[s.PHID]
}

// since is when a call can have been made at the earliest: a busy receiver may
// see it when its caller has given up or died already.
func (s story) since(i int) time.Time {
	if at, claimed := s.claim(i); claimed && s.calls[i].Caller == ByWaybill {
		return at
	}
	return s.calls[i].Start
}

// result is the first result written for a call, before the next one began.
func (s story) result(i int) (Write, bool) {
	since := s.since(i)
	for _, w := range s.writes {
		late := i+1 < len(s.calls) && w.At.After(s.calls[i+1].Start)
		if w.Result && !late && !w.At.Before(since) {
			return w, true
		}
	}
	return Write{}, false
}

// claim is the last claim before a call of Waybill's began.
func (s story) claim(i int) (at time.Time, found bool) {
	for _, w := range s.writes {
		if !w.Result && !w.At.After(s.calls[i].Start) {
			at, found = w.At, true
		}
	}
	return at, found
}

// unknown counts calls that left no result in the row.
func (v *Verdict) unknown(s story) {
	for i := range s.calls {
		if _, known := s.result(i); !known {
			v.Unknown++
		}
	}
}

// repeats judges each call for a row but the first.
func (v *Verdict) repeats(s story) {
	for i := range s.calls {
		v.claimed(s, i)
	}
	for i := 1; i < len(s.calls); i++ {
		if result, known := s.result(i - 1); known {
			v.retried(s, i, result)
		} else {
			v.repeated(s, i)
		}
	}
}

// claimed: each of Waybill's calls has a claim of its own.
func (v *Verdict) claimed(s story, i int) {
	if s.calls[i].Caller != ByWaybill {
		return
	}
	at, found := s.claim(i)
	if !found || i > 0 && at.Before(s.calls[i-1].Start) && !s.evidence.limits(s.calls[i-1], s.calls[i]) {
		v.wrong("claim: call %d for row %s of %s has no claim of its own", i+1, s.PHID, s.Hook)
	}
	// The receiver may be as late as a busy machine makes it.
	late := s.calls[i].Start.Sub(at) - s.evidence.Rules.UseWithin
	if found && s.evidence.Rules.UseWithin > 0 && late > detects && !s.evidence.standing(s.calls[i]) {
		v.wrong("late: call %d for row %s of %s began %v after its claim, beyond %v", i+1, s.PHID, s.Hook,
			s.calls[i].Start.Sub(at), s.evidence.Rules.UseWithin)
	}
}

// fence: after somebody else's save no result is written but under a new claim.
// Phorge's own saves have no guard, and ends without a call need no claim.
func (v *Verdict) fence(s story) {
	touched, was := s.evidence.Touched[s.PHID]
	if !was || s.evidence.Saved[s.PHID] {
		return
	}
	for _, w := range s.writes {
		if !w.At.After(touched) {
			continue
		}
		if w.Result && !w.Uncalled {
			v.wrong("fence: a result was written on row %s of %s at %s, which somebody else had saved at %s after its claim",
				s.PHID, s.Hook, clock(w.At), clock(touched))
		}
		return
	}
}

// retried: after a failure that stands in the row the backoff is kept. A call
// after a success is judged by afterTheEnd.
func (v *Verdict) retried(s story, i int, result Write) {
	v.Retries++
	gap := s.calls[i].Start.Sub(s.calls[i-1].Start)
	early := gap < s.evidence.Rules.Backoff-secondsOfTheDatabase && !s.evidence.stepped(s.calls[i-1].Start, s.calls[i].Start)
	if result.After == queued && s.calls[i].Caller == ByWaybill && early {
		v.wrong("early: row %s of %s was retried after %v, the backoff is %v", s.PHID, s.Hook, gap, s.evidence.Rules.Backoff)
	}
}

// repeated: after an unknown outcome somebody must have had an accident, and
// Waybill keeps the lease.
func (v *Verdict) repeated(s story, i int) {
	first, second := s.calls[i-1], s.calls[i]
	r := Repeat{Row: s.PHID, Hook: s.Hook, First: first, Second: second, Gap: second.Start.Sub(first.Start)}
	fault, found := s.evidence.explain(first, s.since(i-1))
	touched, was := s.evidence.Touched[s.PHID]
	switch {
	case was && touched.After(s.since(i-1)):
		r.Why = fmt.Sprintf("saved by somebody else at %s", clock(touched))
	case found:
		r.Why = fmt.Sprintf("%s of %s at %s", fault.Kind, fault.Who, clock(fault.From))
	default:
		v.wrong("unexplained: row %s of %s was called again, but nothing happened to its caller %d (%s from %s to %s, answer %d)",
			s.PHID, s.Hook, first.PID, first.Caller, clock(first.Start), clock(first.End), first.Status)
	}
	if first.Caller == ByWaybill && second.Caller == ByWaybill {
		before, _ := s.claim(i - 1)
		now, _ := s.claim(i)
		if r.Gap = now.Sub(before); r.Gap < s.evidence.Rules.Lease-secondsOfTheDatabase && !s.evidence.standing(second) {
			v.wrong("early: row %s of %s was claimed again after %v, the lease is %v", s.PHID, s.Hook, r.Gap, s.evidence.Rules.Lease)
		}
	}
	v.Repeats = append(v.Repeats, r)
}

// explain finds a fault of the caller's between the earliest time of its call
// and the moment at which it had surely written the result.
func (e Evidence) explain(c Call, since time.Time) (Fault, bool) {
	for _, f := range e.Faults {
		same := f.PID == 0 || c.PID == 0 || f.PID == c.PID
		if same && !f.To.Before(since) && (c.End.IsZero() || !f.From.After(c.End.Add(e.Rules.WriteWithin))) {
			return f, true
		}
	}
	return Fault{}, false
}

// queued is the status of a row that is not at its end.
const queued = "queued"

// afterTheEnd: nobody calls for a row that stood finished, but Phorge in the
// stated case that the lock was lost around the write, and Waybill where Phorge
// failed the row, without a call, between its claim and its call.
func (v *Verdict) afterTheEnd(s story) {
	end, uncalled := time.Time{}, false
	for _, w := range s.writes {
		if w.Before != queued {
			said := fmt.Sprintf("row %s of %s, %s, made %s at %s", s.PHID, s.Hook, w.Before, w.After, clock(w.At))
			v.Overwrites = append(v.Overwrites, said)
			if s.evidence.Saved != nil && !s.evidence.Saved[s.PHID] {
				v.wrong("overwritten: %s, and not by Phorge", said)
			}
		}
		if w.Before == queued && w.After != queued {
			end, uncalled = w.At, w.Uncalled
		}
	}
	for i, c := range s.calls {
		if uncalled && c.Caller == ByWaybill && s.since(i).Before(end) {
			continue
		}
		if end.IsZero() || !c.Start.After(end) || c.Caller == ByPhorge && s.evidence.lostBetween(end, c.Start) || s.evidence.standing(c) {
			continue
		}
		v.wrong("double: row %s of %s stood finished at %s, and was called again by %s (%d) at %s",
			s.PHID, s.Hook, clock(end), c.Caller, c.PID, clock(c.Start))
	}
}

// lostBetween says whether a fault took the lock away between a write and a
// call of Phorge's soon after it. The server may have made the write when its
// process was dead already.
func (e Evidence) lostBetween(write, call time.Time) bool {
	for _, f := range e.Faults {
		if !f.To.Before(write.Add(-e.Rules.WriteWithin)) && !f.From.After(call) {
			return call.Before(write.Add(phorgeLooksFor))
		}
	}
	return false
}

// Story tells what is known of a row, in order of time.
func (e Evidence) Story(row string) string {
	type event struct {
		at   time.Time
		text string
	}
	var events []event
	add := func(at time.Time, format string, args ...any) {
		events = append(events, event{at, fmt.Sprintf(format, args...)})
	}
	for _, c := range e.Calls {
		if c.Row == row {
			add(c.Start, "called by %s (%d), answered with %d at %s", c.Caller, c.PID, c.Status, clock(c.End))
		}
	}
	for _, w := range e.Writes {
		if w.Row == row {
			add(w.At, "written: %s -> %s, result %v", w.Before, w.After, w.Result)
		}
	}
	for _, k := range e.Kept {
		if k.Row == row {
			add(k.At, "its success stands in the history")
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	lines := []string{"row " + row + " is " + e.Found[row].Status}
	for _, v := range events {
		lines = append(lines, clock(v.at)+" "+v.text)
	}
	return strings.Join(lines, "\n")
}
