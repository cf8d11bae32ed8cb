package scenario_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"waybill/test/scenario"
)

// conduct plays 200 moves and returns what was played in which order.
func conduct(t *testing.T, seed uint64) (order []int) {
	t.Helper()
	c := scenario.Conductor{Seed: seed, Every: 10 * time.Microsecond}
	c.Moves = []scenario.Move{
		{Kind: "rare", Play: func(chance *rand.Rand) bool { order = append(order, -1-chance.IntN(5)); return true }},
		{Kind: "often", Weight: 9, Play: func(chance *rand.Rand) bool { order = append(order, chance.IntN(5)); return true }},
	}
	c.Conduct(t, 200)
	t.Log(c.Played())
	return order
}

func TestASeedMakesTheSameChoices(t *testing.T) {
	first := conduct(t, 7)
	if second := conduct(t, 7); !slices.Equal(first, second) {
		t.Errorf("%v\n%v", first, second)
	}
	if other := conduct(t, 8); slices.Equal(first, other) {
		t.Error("another seed made the same choices")
	}
	rare := 0
	for _, played := range first {
		if played < 0 {
			rare++
		}
	}
	// One in ten of 200, and nothing else for this seed.
	if rare == 0 || rare > 60 {
		t.Errorf("a move of weight 1 in 10 was played %d times of 200", rare)
	}
}
