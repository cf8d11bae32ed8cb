package activities

import (
	"sync"
	"time"
)

// mostSleepers is how many requests of one hook may rest in open workflows.
// Beyond it a row is found again by its feed when it is due: a receiver that is
// down for a week must not fill Temporal with runs that only wait (a sleeping
// run costs some 25 KiB in the worker's cache and a timer in the server).
const mostSleepers = 100

// LongestInVain is the longest rest of a workflow whose attempt was not made: it
// found no room, or nobody took up its send in time. The workflow rests longer
// each time, up to this; only it knows how long.
const LongestInVain = 30 * time.Second

// sleepers are the requests of each hook that rest in open workflows, counted
// in the process that owns the hook, which all of them ask. One keeps its place
// from rest to rest, so those with a place do not change with every attempt.
//
// The count is this process's own. After a change of owner runs that the former
// one let rest are not known here until they ask again, so there may be as many
// more for one backoff.
type sleepers struct {
	mu    sync.Mutex
	hooks map[string]map[string]time.Time // hook and request PHID → when it should be back
}

// overdue is how long a place is kept for one that should be back. A server that
// is too busy wakes runs minutes late, and a place given away meanwhile is one
// run more: with a lease of patience, 3,200 of them rested where 2,000 may. One
// that is not heard of for so long was ended by somebody; until then the feed
// takes care of a row of its hook in its place.
const overdue = 15 * time.Minute

// rest gives a request a place until it should be back. false: there is none.
func (s *sleepers) rest(ref Ref, back, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	places := s.hooks[ref.HookPHID]
	if _, has := places[ref.PHID]; !has && len(places) >= mostSleepers {
		s.forget(places, now)
		if len(places) >= mostSleepers {
			return false
		}
	}
	if places == nil {
		places = map[string]time.Time{}
		s.hooks[ref.HookPHID] = places
	}
	places[ref.PHID] = back
	return true
}

// forget gives up the places of those that are overdue.
func (s *sleepers) forget(places map[string]time.Time, now time.Time) {
	for phid, back := range places {
		if now.Sub(back) > overdue {
			delete(places, phid)
		}
	}
}

// leave gives up a request's place: its workflow ends.
func (s *sleepers) leave(ref Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	places := s.hooks[ref.HookPHID]
	delete(places, ref.PHID)
	if len(places) == 0 {
		delete(s.hooks, ref.HookPHID)
	}
}

// crowded says, for a workflow that would rest now, that enough of its hook's do
// and it should end instead; the feed takes care of its row.
func (h *Herald) crowded(ref Ref, wait time.Duration) bool {
	now := h.Clock()
	return !h.sleepers.rest(ref, now.Add(wait), now)
}

// afterClaim counts the workflow that asked for a claim among its hook's
// sleepers, or no longer.
func (h *Herald) afterClaim(in ClaimInput, res *ClaimResult) {
	switch res.State {
	case "", Won, Elsewhere, Unowned:
		// An attempt begins, or somebody else counts, or nobody knows.
	case Leased, Resting:
		res.Crowded = h.crowded(in.Ref, res.Wait)
	case Busy, Lost:
		// A run that has sent nothing ends by itself.
		if in.Attempt > 1 {
			res.Crowded = h.crowded(in.Ref, max(res.Wait, LongestInVain))
			return
		}
		h.sleepers.leave(in.Ref)
	case Finished, Misconfigured, Collected, Untouched, Paused, BreakerOpen:
		h.sleepers.leave(in.Ref)
	}
}

// afterSend is the same for a send.
func (h *Herald) afterSend(in SendInput, res *SendResult) {
	switch {
	case res.State == Unsent:
		res.Crowded = h.crowded(in.Ref, max(res.Wait, LongestInVain))
	case res.State == Unknown, res.Retry && (res.State == Recorded || res.State == Unwritten):
		res.Crowded = h.crowded(in.Ref, res.Wait)
	default:
		h.sleepers.leave(in.Ref)
	}
}
