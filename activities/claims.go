package activities

import (
	"sync"
	"time"

	"waybill/internal/herald"
)

// held is a claim this process won and has not used, with everything the send
// needs: nothing is read again between claim and POST.
type held struct {
	claim      herald.Claim
	request    herald.Request
	properties herald.Properties
	call       Call
	pass       *Pass
	// begun is when the claim statement was about to be sent: counted from its
	// answer, a delayed answer would give an old claim a fresh lease.
	begun time.Time
	// dbNow is the database's clock (seconds) at the local moment loaded.
	dbNow  int64
	loaded time.Time
	expiry *time.Timer
}

// claims are the unused claims of this process. Taking one removes it, so a
// claim is sent at most once, whoever asks and however often.
type claims struct {
	mu   sync.Mutex
	held map[string]*held
}

// put keeps a claim until it is taken or expires.
func (c *claims) put(phid string, h *held, life time.Duration, expired func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[phid] = h
	h.expiry = time.AfterFunc(life, func() {
		if c.remove(phid, h) {
			expired()
		}
	})
}

// peek returns the unused claim on a request, nil when there is none.
func (c *claims) peek(phid string) *held {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[phid]
}

// take hands out the claim of that version, once.
func (c *claims) take(phid string, version int64) *held {
	h := c.peek(phid)
	if h == nil || h.claim.Version != version || !c.remove(phid, h) {
		return nil
	}
	h.expiry.Stop()
	return h
}

func (c *claims) remove(phid string, h *held) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[phid] != h {
		return false
	}
	delete(c.held, phid)
	return true
}

// sighting is when this process first saw a claim of somebody's on a row.
type sighting struct {
	version int64
	first   time.Time
	// void: the claim was ours and is known to have sent nothing.
	void bool
}

// sightings judge claims by this process's monotonic clock. The database's
// clock alone may jump over a lease while its claimer is still sending.
type sightings struct {
	mu   sync.Mutex
	seen map[uint64]sighting
}

// age says how long the claim has been seen on the row, starting now if it is
// new. A void claim is infinitely old.
func (s *sightings) age(id uint64, version int64, now time.Time) (age time.Duration, void bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, ok := s.seen[id]
	if !ok || seen.version != version {
		seen = sighting{version: version, first: now}
		s.seen[id] = seen
	}
	return now.Sub(seen.first), seen.void
}

// void records that the claim sent nothing, so that nobody waits for it.
func (s *sightings) void(c herald.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[c.ID] = sighting{version: c.Version, void: true}
}

// forget drops what is known about a row, which is over or freshly claimed.
func (s *sightings) forget(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, id)
}
