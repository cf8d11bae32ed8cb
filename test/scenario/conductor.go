package scenario

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// Move is something a Conductor can do.
type Move struct {
	Kind string
	// Weight is how often it is chosen, relative to the others; 0 counts as 1.
	Weight int
	// Play does it, and says whether it could be done. chance is the conductor's
	// own: whatever a move leaves to chance belongs to the seed.
	Play func(chance *rand.Rand) bool
}

// Conductor does things by chance, every so often, and keeps count. The same
// seed makes the same choices; what the processes make of them is their own.
type Conductor struct {
	// Seed is printed, so that a run's choices can be made again.
	Seed uint64
	// Every is the middle of the pause before each move, which is between half
	// and one and a half of it.
	Every time.Duration
	Moves []Move

	played map[string]int
}

// Conduct plays n moves, less those that could not be done.
func (c *Conductor) Conduct(t testing.TB, n int) {
	t.Helper()
	t.Logf("conductor: seed %d", c.Seed)
	chance := rand.New(rand.NewPCG(c.Seed, 0)) //nolint:gosec // a test's choices, to be repeated
	c.played = map[string]int{}
	for range n {
		pass(t, c.Every/2+time.Duration(chance.Int64N(int64(c.Every))))
		move := c.choose(chance)
		if move.Play(chance) {
			c.played[move.Kind]++
		}
	}
}

// choose takes a move by weight.
func (c *Conductor) choose(chance *rand.Rand) Move {
	total := 0
	for _, p := range c.Moves {
		total += max(p.Weight, 1)
	}
	at := chance.IntN(total)
	for _, p := range c.Moves {
		if at -= max(p.Weight, 1); at < 0 {
			return p
		}
	}
	panic("scenario: a conductor without moves")
}

// Counts are how often each kind of move was done.
func (c *Conductor) Counts() map[string]int { return maps.Clone(c.played) }

// Played says in words what was done.
func (c *Conductor) Played() string {
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(c.played)) {
		words = append(words, fmt.Sprintf("%d x %s", c.played[kind], kind))
	}
	return fmt.Sprintf("seed %d: %s", c.Seed, strings.Join(words, ", "))
}

// pass lets time pass, where that is the point.
func pass(t testing.TB, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
