package activities

import (
	"sync"
	"time"

	"waybill/internal/herald"
)

// sighting is since when a claim is known to stand on a row.
type sighting struct {
	version int64
	first   time.Time
	// void: the claim was ours and is known to have sent nothing.
	void bool
}

// sightings judge claims by this process's monotonic clock. The database's
// clock alone may jump over a lease while its claimer is still sending. One
// that is forgotten counts from the hook's lock again, or is seen anew.
type sightings struct {
	mu   sync.Mutex
	seen recent[sighting]
}

// age says how long the claim is known to have stood, at the moment now. One
// that has not been seen before has stood at least since the hook's lock was
// taken: nobody else could claim from then on. The zero since means that there
// is no such moment. A void claim has no age: nobody need wait for it.
func (s *sightings) age(c herald.Claim, since, now time.Time) (age time.Duration, void bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.seen.get(c.ID)
	if !ok || seen.version != c.Version {
		seen = sighting{version: c.Version, first: now}
		if !since.IsZero() {
			seen.first = since
		}
		s.seen.set(c.ID, seen)
	}
	return now.Sub(seen.first), seen.void
}

// own records a claim of this process's own, which stands since begun.
func (s *sightings) own(c herald.Claim, begun time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.set(c.ID, sighting{version: c.Version, first: begun})
}

// void records that the claim sent nothing, so that nobody waits for it.
func (s *sightings) void(c herald.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.set(c.ID, sighting{version: c.Version, void: true})
}

// reports remembers which versions of rows were reported as unprocessable: the
// sweep finds them again and again, an operator needs to read of each once.
type reports struct {
	mu   sync.Mutex
	told recent[int64]
}

// first reports whether this version of the row has not been reported before.
func (r *reports) first(id uint64, version int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if told, ok := r.told.get(id); ok && told == version {
		return false
	}
	r.told.set(id, version)
	return true
}
