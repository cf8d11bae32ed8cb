package activities

import (
	"sync"
	"time"

	"waybill/internal/herald"
)

// sighting is when this process first saw a claim of somebody's on a row.
type sighting struct {
	version int64
	first   time.Time
	// void: the claim was ours and is known to have sent nothing.
	void bool
}

// sightings judge claims by this process's monotonic clock. The database's
// clock alone may jump over a lease while its claimer is still sending. One
// that is forgotten is seen anew, which delays by a lease and harms nobody.
type sightings struct {
	mu   sync.Mutex
	seen recent[sighting]
}

// age says how long the claim has been seen on the row, starting now if it is
// new. A void claim has no age: nobody need wait for it.
func (s *sightings) age(id uint64, version int64, now time.Time) (age time.Duration, void bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.seen.get(id)
	if !ok || seen.version != version {
		seen = sighting{version: version, first: now}
		s.seen.set(id, seen)
	}
	return now.Sub(seen.first), seen.void
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
