package starter

import (
	"context"
	"testing"
	"time"
)

// here is a process's own ownership of some hooks.
type here map[string]time.Duration

func (h here) Ready(hook string) (wait time.Duration, owned bool) {
	wait, owned = h[hook]
	return wait, owned
}

func (h here) Reserve(context.Context, string) (release func(), err error) {
	return func() { h["reserved"]++ }, nil
}

func (h here) Wake() { h["woken"]++ }

// A process feeds its own hooks as before, and those of others in their room.
func TestBothFeedsWhatNobodyElseFeeds(t *testing.T) {
	own, there := here{"mine": time.Second}, NewElsewhere(nil, 4)
	there.owners = map[string]bool{"theirs": true, "mine": true}
	b := NewBoth(own, there)
	for _, tt := range []struct {
		hook           string
		wait           time.Duration
		owned, watched bool
	}{
		{"mine", time.Second, true, false},
		{"theirs", 0, true, true},
		{"nobody's", 0, false, true},
	} {
		wait, owned := b.Ready(tt.hook)
		if wait != tt.wait || owned != tt.owned || b.Watched(tt.hook) != tt.watched {
			t.Errorf("%s: %v, %v, watched %v", tt.hook, wait, owned, b.Watched(tt.hook))
		}
	}
	for _, hook := range []string{"theirs", "mine"} {
		own["reserved"] = 0
		release, err := b.Reserve(t.Context(), hook)
		if err != nil {
			t.Fatal(err)
		}
		release()
		if here := own["reserved"] == 1; here != (hook == "mine") {
			t.Errorf("%s: in own room %v", hook, here)
		}
	}
	if b.Wake(); own["woken"] != 1 {
		t.Error("not woken")
	}
}
