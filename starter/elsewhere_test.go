package starter

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestElsewhereKnowsTheOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var owned []string
		var err error
		e := NewElsewhere(func(context.Context) ([]string, error) {
			mu.Lock()
			defer mu.Unlock()
			return owned, err
		}, 8)
		set := func(hooks []string, broken error) {
			mu.Lock()
			owned, err = hooks, broken
			mu.Unlock()
			time.Sleep(ownersEvery)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go e.Run(ctx)
		ready := func(hook string, want bool) {
			t.Helper()
			synctest.Wait()
			if _, got := e.Ready(hook); got != want {
				t.Errorf("%s owned: %v", hook, got)
			}
		}
		ready("a", false)
		set([]string{"a"}, nil)
		ready("a", true)
		set(nil, errAway) // what was known stays
		ready("a", true)
		set(nil, nil)
		ready("a", false)
		e.Wake()
		cancel()
		synctest.Wait()
	})
}

// Hooks that hang, however many, leave a quarter of the room to quick ones.
func TestElsewhereKeepsRoomForQuickHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewElsewhere(nil, 8)
		reserve := func(hook string) func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			release, err := e.Reserve(ctx, hook)
			if err != nil {
				return nil
			}
			return release
		}
		reserve("quick")()
		var hanging []func()
		for n := range 8 {
			if release := reserve(fmt.Sprint("hanging", n)); release != nil {
				hanging = append(hanging, release)
			}
		}
		if len(hanging) != 6 {
			t.Fatalf("%d unknown hooks in a room of 8", len(hanging))
		}
		first, second := reserve("quick"), reserve("quick")
		if first == nil || second == nil || reserve("quick") != nil {
			t.Fatal("quick hooks have a quarter of the room")
		}
		first()
		first() // once is enough
		time.Sleep(2 * quickWithin)
		second()
		if reserve("quick") != nil {
			t.Error("a hook that took long is not quick any more")
		}
		for _, release := range hanging {
			release()
		}
		for range 6 {
			if reserve("hanging0") == nil {
				t.Fatal("room was lost")
			}
		}
	})
}
