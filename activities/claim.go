package activities

import (
	"context"
	"errors"
	"strings"
	"time"

	"waybill/internal/herald"
)

// longestWait bounds what is asked of a workflow while clocks are wrong: the one
// that made a wait long may be put right meanwhile.
const longestWait = 10 * time.Minute

// putBack is how far a row may lie ahead of the database's clock by rule: each
// write moves its version by one at least, however many there are in a second.
// What lies further ahead was written before the clock was put back, and that
// clock says nothing about it: this process's own has to do.
const putBack = 3

// Claim asks for the right to send a request once. It takes the hook's slot,
// looks at the row, and moves the row's version; what stands in the way comes
// back as a state. An error means that a database could not be asked: nothing
// is sent, and asking again is safe.
//
// A Claim that runs again because its workflow task was lost finds its own
// unused claim and returns it, or reads from the row what became of it.
func (h *Herald) Claim(ctx context.Context, in ClaimInput) (res ClaimResult, err error) {
	if own := h.claims.peek(in.PHID); own != nil {
		return won(own), nil
	}
	pass, refusal := h.Gate.Admit(ctx, in.Ref, in.Attempt > 1)
	// Deferred, so that no row, however odd, takes the hook's slot along.
	defer func() {
		if res.State == Won {
			return
		}
		if pass != nil {
			pass.Done(0)
		}
		h.Gate.Ended(Ended{Ref: in.Ref, State: res.State, Wait: res.Wait})
	}()
	res, err = h.claim(ctx, in, pass, refusal)
	h.afterClaim(in, &res)
	if err == nil && res.State != Untouched {
		h.Meter.Claim(res.State)
	}
	return res, err
}

// claim goes through Phorge's order of checks; the first that speaks decides.
func (h *Herald) claim(ctx context.Context, in ClaimInput, pass *Pass, refusal ClaimResult) (ClaimResult, error) {
	loaded := h.Clock()
	s, err := h.Rows.Load(ctx, in.ID)
	if errors.Is(err, herald.ErrGone) || (err == nil && s.Request.PHID != in.PHID) {
		return collected(), nil
	}
	if err != nil {
		return ClaimResult{}, err
	}
	if s.Request.HookPHID != in.HookPHID {
		// Admission was to the other hook; only a start by hand can say this.
		return h.untouched(s.Request, "The request belongs to another hook than its workflow says."), nil
	}
	ready, end, err := h.inspect(ctx, s)
	if err != nil || end.State != "" {
		return end, err
	}
	if pass == nil {
		return refusal, nil
	}
	if end := h.leased(s, pass.Since); end.State != "" {
		return end, nil
	}
	if hold, err := h.held(ctx, in, s); err != nil || hold.State != "" {
		return hold, err
	}
	ready.pass, ready.dbNow, ready.loaded = pass, s.Now, loaded
	return h.take(ctx, s.Request, ready)
}

// leased says that somebody's claim on the row must still be respected: by the
// database's clock or by how long this process knows of it; since is when it
// got the hook's lock. The zero result: there is none.
func (h *Herald) leased(s herald.Snapshot, since time.Time) ClaimResult {
	r := s.Request
	if !r.Claimed() {
		return ClaimResult{}
	}
	age, void := h.sightings.age(herald.Claim{ID: r.ID, Version: r.Modified}, since, h.Clock())
	if void {
		return ClaimResult{}
	}
	wait := h.Rules.Lease - age
	ahead := between(s.Now, r.Modified)
	if ahead <= putBack*time.Second {
		wait = max(wait, ahead+h.Rules.Lease)
	}
	switch {
	case ahead+h.Rules.Lease > herald.FarFuture:
		return h.untouched(r, "The row's dateModified lies more than a day in the future.")
	case wait <= 0:
		return ClaimResult{}
	}
	return ClaimResult{
		State: Leased, Wait: min(wait, longestWait),
		Reason: "An earlier claim may still be sending; its lease is not over.",
	}
}

// held says what holds the hook or the row back for now.
func (h *Herald) held(ctx context.Context, in ClaimInput, s herald.Snapshot) (ClaimResult, error) {
	p, err := h.Pauses.Paused(ctx, in.HookPHID)
	if err != nil {
		return ClaimResult{}, err
	}
	if p != nil {
		return ClaimResult{State: Paused, Reason: orderText(*p)}, nil
	}
	if wait := h.breaker(in.HookPHID, s); wait > 0 {
		return ClaimResult{
			State: BreakerOpen, Wait: min(wait, longestWait),
			Reason: "Too many of the hook's requests failed lately.",
		}, nil
	}
	rest := h.resting(s)
	if s.Request.LastResult == herald.ResultFail && rest > 0 && !in.Now {
		return ClaimResult{
			State: Resting, Wait: min(rest, longestWait),
			Reason: "The last attempt failed a short while ago.",
		}, nil
	}
	return ClaimResult{}, nil
}

// orderText is an operator's order as a sentence; they may have given no reason.
func orderText(p herald.Pause) string {
	done := p.Verb()
	text := strings.ToUpper(done[:1]) + done[1:] + " by " + p.By
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// resting is what is left of a failed row's backoff.
func (h *Herald) resting(s herald.Snapshot) time.Duration {
	r := s.Request
	ahead := between(s.Now, r.LastEpoch)
	if ahead <= putBack*time.Second {
		return ahead + h.Rules.Backoff
	}
	age, _ := h.sightings.age(herald.Claim{ID: r.ID, Version: r.Modified}, time.Time{}, h.Clock())
	return h.Rules.Backoff - age
}

// between is the time from one moment to another, in the database's seconds.
func between(from, to int64) time.Duration { return time.Duration(to-from) * time.Second }

// take makes the claim and keeps it for Send.
func (h *Herald) take(ctx context.Context, r herald.Request, ready *held) (ClaimResult, error) {
	// Counted from its answer, a delayed answer would give an old claim a fresh
	// lease.
	ready.begun = h.Clock()
	c, ok, err := h.Rows.Claim(ctx, r.ID, r.Modified, ready.pass.Lock)
	switch {
	case errors.Is(err, herald.ErrUnclaimable), errors.Is(err, herald.ErrNoVersion):
		return h.untouched(r, err.Error()), nil
	case err != nil:
		return ClaimResult{}, err
	case !ok:
		return lost("Another claim was faster, or the hook's lock is no longer held."), nil
	}
	ready.claim = c
	h.sightings.own(c, ready.begun)
	life := h.Rules.useWithin() - h.Clock().Sub(ready.begun)
	if life <= 0 {
		h.sightings.void(c)
		return lost("The claim's answer came too late for the claim to be used."), nil
	}
	h.claims.put(r.PHID, ready, life, func() { h.drop(r, ready) })
	return won(ready), nil
}

// drop gives up a claim that nobody used in time.
func (h *Herald) drop(r herald.Request, c *held) {
	h.sightings.void(c.claim)
	c.pass.Done(0)
	h.Gate.Ended(Ended{Ref: Ref{ID: r.ID, PHID: r.PHID, HookPHID: r.HookPHID}, State: Lost})
}

func won(c *held) ClaimResult {
	return ClaimResult{State: Won, Version: c.claim.Version, Queue: c.pass.Queue, Fast: c.pass.Fast}
}

func lost(reason string) ClaimResult { return ClaimResult{State: Lost, Reason: reason} }

func collected() ClaimResult {
	return ClaimResult{State: Collected, Reason: "Phorge has removed the request."}
}
