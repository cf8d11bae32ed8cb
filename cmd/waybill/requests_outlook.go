package main

import (
	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

// outlook is everything that decides what happens to a row next.
type outlook struct {
	row     heralddb.Listed
	hook    *herald.Hook // nil: gone
	pause   *pauseView
	owner   string
	begins  int64 // when the owner begins to send, 0 when it does so already
	until   int64 // of the breaker, 0 when it is closed
	lease   int64
	backoff int64
}

// next says in words what happens to the row, and from when on, and names the
// first thing that stands in the way: what keeps the feed from the row (a pause,
// no owner), then the claim's own checks in their order (activities/inspect.go).
// The moment is 0 where there is none.
func (o outlook) next() (text string, from int64) {
	if text := o.over(); text != "" {
		return text, 0
	}
	if text := o.stuck(); text != "" {
		return text, 0
	}
	return o.waits()
}

// over speaks of rows that nobody will touch again.
func (o outlook) over() string {
	switch o.row.State {
	case heralddb.StateSent:
		return "Nothing: it was delivered."
	case heralddb.StateFailed:
		return "Nothing: failed is final, for Phorge as for Waybill. It is not put back into the queue; to call the hook again, make a new request in Phorge."
	case heralddb.StateUnknown:
		return "Nothing: its status or result is none that Phorge writes, so nobody takes it up until the row is put right."
	default:
		return ""
	}
}

// stuck speaks of rows that cannot be sent as they are.
func (o outlook) stuck() string {
	switch {
	case o.hook == nil:
		return "Nothing: its hook is gone from Phorge. The row stays as it is until Phorge collects it."
	case o.pause != nil && o.pause.Kind == hookReleased:
		return "Phorge's own worker delivers it: the hook is " + o.pause.said()
	case farAhead(o.row, o.lease):
		return "Nothing: it is dated more than a day ahead of the database's clock. The row stays as it is."
	case o.pause != nil:
		return "It waits until the hook is resumed: " + o.pause.said()
	case o.owner == "":
		return "It waits for a process of Waybill that owns its hook: is one running?"
	}
	if _, err := herald.ParseProperties(o.row.Properties); err != nil {
		return "Nothing: it cannot be processed (" + err.Error() + "). The row stays as it is, as with Phorge's own worker."
	}
	if o.hook.Disabled() {
		return "It is going to be written as failed: the hook is disabled in Phorge."
	}
	if _, err := herald.ParseURI(o.hook.URI); err != nil {
		return "It is going to be written as failed: the hook's address is not one that may be called."
	}
	if len(o.hook.HMACKey) == 0 {
		return "Nothing: the hook has no HMAC key, so that its calls cannot be signed. The row stays as it is."
	}
	return ""
}

// farAhead says that the row is dated where no clock will come: Waybill never
// takes up a claim or a failure from there (activities/claim.go, the statements
// of heralddb). Phorge's own worker looks at no dates.
func farAhead(r heralddb.Listed, lease int64) bool {
	if r.Status != herald.StatusQueued {
		return false
	}
	end := r.Now + seconds(herald.FarFuture)
	failed := r.LastResult == herald.ResultFail && r.LastEpoch > end
	return failed || (r.Claimed() && r.Modified+lease > end)
}

// waits speaks of rows that are sent sooner or later.
func (o outlook) waits() (text string, from int64) {
	if o.row.State == heralddb.StateClaimed {
		return o.claimed()
	}
	if o.until > o.begins {
		return "It waits for the breaker, which is open until " + stamp(o.until) + ": too many of the hook's requests failed lately.", o.until
	}
	rested := o.row.LastEpoch + o.backoff
	if o.begins != 0 && o.row.Claimed() {
		return o.claimed() // the claim's lease is over, and still nobody knows
	}
	if o.begins != 0 && (o.row.State != heralddb.StateResting || o.begins > rested) {
		return "It waits, as every request of the hook does: " + cutOff + ", and may still be calling. " +
			"Sending begins again at " + stamp(o.begins) + ".", o.begins
	}
	switch o.row.State {
	case heralddb.StateResting:
		from = rested
		return "It rests after its failure and is tried again from " + stamp(from) + " on; `waybill requests retry-now` tries it at once.", from
	case heralddb.StateDue:
		return "It is tried again as soon as it is its turn.", o.row.Now
	default:
		return "It is sent as soon as it is its turn.", o.row.Now
	}
}

// cutOff is all that is known of an owner that did not hand the hook over.
const cutOff = "the process that called the hook before crashed or was cut off"

// claimed speaks of a row that somebody took up to send. While the hook waits for
// its last owner nobody else sends, so the claim is that one's.
func (o outlook) claimed() (text string, from int64) {
	end := o.row.Modified + o.lease
	if o.begins == 0 {
		return "It is being sent. Should its sender have died, it is tried again after its claim's lease, " + stamp(end) + ".", 0
	}
	from = max(end, o.begins)
	return "It was being sent when " + cutOff + ", so whether it arrived is not known. Unless that process still " +
		"writes the result, it is sent again from " + stamp(from) + " on; until then every request of the hook waits.", from
}

func stamp(second int64) string { return moment(second).String() }

// backoff is the rest after a failure, in the database's seconds.
func (t *tables) backoff() int64 { return seconds(t.config.Herald.RetryBackoff) }
