package activities

import (
	"sync"
	"time"

	"waybill/internal/herald"
	"waybill/internal/planted"
)

// held is a claim this process won and has not used, with everything the send
// needs: nothing is read again between claim and POST.
type held struct {
	claim      herald.Claim
	properties herald.Properties
	before     int64 // lastRequestEpoch as the claim found it
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

// put keeps a claim until it is taken or its life is over.
func (c *claims) put(phid string, h *held, life time.Duration, expired func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[phid] = h
	if planted.Is(planted.NoLeaseCheck) {
		life = time.Hour
	}
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
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held[phid]
	if h == nil || h.claim.Version != version {
		return nil
	}
	delete(c.held, phid)
	h.expiry.Stop()
	return h
}

// remove drops a claim, unless it has been taken: its timer may have run out in
// that moment, and another claim may stand in its place by now.
func (c *claims) remove(phid string, h *held) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[phid] != h {
		return false
	}
	delete(c.held, phid)
	return true
}
