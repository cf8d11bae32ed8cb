package starter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/activities"
)

// announcements counts the starts of a hook's workflow.
func (w *world) announcements(hook string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.starts {
		if s.id == "hook/"+hook {
			n++
		}
	}
	return n
}

// order is the position of a start among all, -1 for none.
func (w *world) order(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.IndexFunc(w.starts, func(s started) bool { return s.id == id })
}

func TestEveryHookIsAnnouncedBeforeItIsFed(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.hooks, w.pauses = []string{"empty", "busy", "paused"}, []string{"paused"}
		w.unowned["empty"] = true
		w.add("busy/1", "paused/1")
	}, func(w *world) {
		for _, h := range w.hooks {
			if w.announcements(h) != 1 {
				t.Errorf("%s announced %d times", h, w.announcements(h))
			}
		}
		if w.order("hook/busy") > w.order("request/busy/1") {
			t.Error("fed before it was announced")
		}
		w.expect("busy/1")
	})
}

// A hook and its first row may come within one poll: the hook goes first.
func TestANewHookWithARow(t *testing.T) {
	play(t, nil, func(w *world) {
		w.wait(10*time.Second + 10*time.Millisecond)
		w.change(func() { w.hooks = []string{"a"} })
		w.add("a/1", "a/2")
		var before, after int
		w.change(func() { before = w.woken })
		w.wait(100 * time.Millisecond)
		w.expect("a/1", "a/2")
		if first := w.order("hook/a"); first != 0 {
			t.Errorf("announced as number %d", first)
		}
		w.change(func() { after = w.woken })
		if after == before {
			t.Error("nobody was told to take the new hook's lock")
		}
	})
}

// Somebody may terminate a hook's workflow; signals need their target.
func TestHooksAreAnnouncedAgain(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.hooks = []string{"a"} }, func(w *world) {
		w.wait(time.Minute)
		w.change(func() { w.open["hook/a"] = false })
		w.wait(announceEvery + sweepSteps*sweepEvery)
		if n := w.announcements("a"); n != 2 {
			t.Errorf("announced %d times", n)
		}
		if n := w.asked("execute"); n > 11*60/int(doubtEvery/time.Second)+5 {
			t.Errorf("asked Temporal %d times", n)
		}
	})
}

// A server that lost its state while nobody asked it for anything.
func TestHooksAreAnnouncedAgainOnAServerThatForgot(t *testing.T) {
	const many = 40
	play(t, func(w *world, _ *Config) {
		for n := range many {
			w.hooks = append(w.hooks, fmt.Sprint(n))
		}
		w.pauses = []string{"*"}
	}, func(w *world) {
		w.wait(time.Minute)
		w.change(func() { clear(w.open) })
		w.wait(doubtEvery + 2*sweepEvery)
		for _, h := range w.hooks {
			if n := w.announcements(h); n != 2 {
				t.Errorf("%s announced %d times", h, n)
			}
		}
		asked := w.asked("execute")
		w.wait(time.Minute)
		if n := w.asked("execute") - asked; n > many+20 {
			t.Errorf("%d questions in the minute after", n)
		}
	})
}

// A PHID of any bytes does no harm to the rows behind it, and is told once.
func TestUnspeakableNames(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.hooks = []string{"a", "b\xff"}
		w.add("a/\x00", "a/ü", "a/1", "b\xff/1", "a/\xfe", "a/2")
	}, func(w *world) {
		w.expect("a/1", "a/2")
		w.wait(30 * time.Minute)
		w.expect("a/1", "a/2")
		if rows, hooks := w.logged("request cannot be processed"), w.logged("hook cannot be served"); rows != 3 || hooks != 1 {
			t.Errorf("%d rows and %d hooks reported", rows, hooks)
		}
		if w.announcements("b\xff") != 0 || w.logged("Temporal") != 0 {
			t.Error("taken for Temporal's fault")
		}
	})
}

// After an outage it may be a cluster that knows nothing.
func TestHooksAreAnnouncedAgainAfterAnOutage(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.hooks = []string{"a", "b"} }, func(w *world) {
		w.breaks("execute", errAway)
		w.add("a/1")
		w.wait(5 * time.Second)
		w.breaks("execute", nil)
		w.change(func() { clear(w.open) })
		w.wait(2*time.Second + sweepSteps*sweepEvery)
		for _, h := range w.hooks {
			if n := w.announcements(h); n != 2 {
				t.Errorf("%s announced %d times", h, n)
			}
		}
		w.expect("a/1")
	})
}

func TestAHookThatGoesAndComesBack(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.hooks = []string{"a"} }, func(w *world) {
		w.breaks("signal", errAway)
		w.change(func() { w.hooks = nil })
		w.wait(5 * time.Second)
		if n := w.asked("signal"); n < 3 || n > 6 {
			t.Errorf("tried to retire it %d times", n)
		}
		w.breaks("signal", nil)
		w.wait(2 * time.Second)
		if !slices.Equal(w.signals, []string{"retire hook/a"}) {
			t.Errorf("signals %q", w.signals)
		}
		w.wait(time.Minute)
		w.change(func() { w.hooks = []string{"a"} })
		w.wait(2 * time.Second)
		if w.announcements("a") != 2 || len(w.signals) != 1 {
			t.Errorf("announced %d times, signals %q", w.announcements("a"), w.signals)
		}
	})
}

func TestAGoneHookWithoutAWorkflow(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.hooks = []string{"a"} }, func(w *world) {
		w.change(func() { w.hooks, w.open["hook/a"] = nil, false })
		w.wait(time.Minute)
		if len(w.signals) != 1 {
			t.Errorf("signals %q", w.signals)
		}
	})
}

// Rows without a hook are started without an owner: their workflows report them.
func TestOrphans(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.unowned["gone"] = true
		w.attempt = func(*row) (activities.Ended, time.Duration) {
			return activities.Ended{State: activities.Untouched}, 0
		}
		w.add("gone/1", "gone/2")
	}, func(w *world) {
		w.expect("gone/1", "gone/2")
		w.add("gone/3")
		w.wait(orphanEvery)
		w.expect("gone/1", "gone/2", "gone/3")
		w.wait(5 * time.Minute)
		w.expect("gone/1", "gone/2", "gone/3")
		if w.announcements("gone") != 0 {
			t.Error("a hook that does not exist was announced")
		}
	})
}

// While the hooks cannot be listed, nobody is taken for gone.
func TestHooksThatCannotBeListed(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.broken["hooks"], w.hooks = errAway, []string{"a"}
		w.add("a/1")
	}, func(w *world) {
		w.wait(2 * time.Minute)
		w.expect()
		w.breaks("hooks", nil)
		w.wait(2 * time.Second)
		w.expect("a/1")
		w.breaks("hooks", errAway)
		w.change(func() { w.hooks = nil })
		w.add("a/2")
		w.wait(time.Minute)
		w.expect("a/1", "a/2")
		if len(w.signals) != 0 {
			t.Errorf("signals %q", w.signals)
		}
	})
}

func TestPausedHooksAreNotStartedAndWokenOnResume(t *testing.T) {
	for _, pause := range []string{"a", "*"} {
		play(t, func(w *world, _ *Config) {
			w.hooks, w.pauses = []string{"a"}, []string{pause}
			w.add("a/1")
		}, func(w *world) {
			w.wait(time.Minute)
			w.add("a/2")
			w.wait(time.Minute)
			w.expect()
			// One of two pauses ends: still paused.
			w.change(func() { w.pauses = append(w.pauses, "a", "*") })
			w.wait(time.Second)
			w.change(func() { w.pauses = []string{"a"} })
			w.wait(time.Second)
			w.expect()
			w.change(func() { w.pauses = nil })
			w.wait(pausesEvery)
			w.expect("a/1", "a/2")
		})
	}
}

// A pause that began a moment ago is met by admission; until the feed knows it,
// it asks no more often than it reads the table.
func TestPauseMetByAdmission(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.hooks = []string{"a"}
		w.attempt = func(*row) (activities.Ended, time.Duration) {
			w.pauses = []string{"a"}
			return activities.Ended{State: activities.Paused}, 0
		}
		w.add("a/1")
	}, func(w *world) {
		w.wait(time.Minute)
		if n := len(w.requests()); n > 2 {
			t.Errorf("started %d times", n)
		}
	})
}

// A pause table that cannot be read changes nothing here: admission decides.
func TestUnreadablePauses(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.hooks, w.pauses = []string{"a", "b"}, []string{"a"}
		w.add("a/1", "b/1")
	}, func(w *world) {
		w.breaks("pauses", errAway)
		w.wait(time.Minute)
		w.expect("b/1")
		if n := w.logged("pause table does not answer"); n != 1 {
			t.Errorf("%d lines about it", n)
		}
	})
}

// Thousands of hooks at a start: all announced soon, not all at once; idle they
// cost what a sweep needs.
func TestManyHooks(t *testing.T) {
	const many = 2000
	play(t, func(w *world, _ *Config) {
		w.latency = 10 * time.Millisecond
		for n := range many {
			w.hooks = append(w.hooks, fmt.Sprintf("h%04d", n))
		}
		w.add("h1999/1")
	}, func(w *world) {
		// The one with a row does not wait for the others.
		w.wait(4 * w.latency)
		w.expect("h1999/1")
		w.wait(w.latency * many / announceIdle)
		if n := w.asked("execute"); n != many+1 {
			t.Errorf("%d starts", n)
		}
		if w.mostOnce > announceAtOnce {
			t.Errorf("%d at once", w.mostOnce)
		}
		w.expect("h1999/1")
		before := map[string]int{}
		w.change(func() {
			for name, n := range w.calls {
				before[name] = n
			}
		})
		w.wait(time.Minute)
		for name, most := range map[string]int{
			"execute": 60 / int(doubtEvery/time.Second), "since": 11 * 60, "hooks": 60, "pauses": 2 * 60, "waiting": 2,
			"heads": many * 60 / sweepSteps, "due": many * 60 / sweepSteps,
		} {
			if n := w.asked(name) - before[name]; n > most+most/50+2 {
				t.Errorf("%s asked %d times in an idle minute, want %d", name, n, most)
			}
		}
	})
}

// Recent rows wake their hooks once, not with every sweep.
func TestRecentRowsOfAnIdleSystemWakeNobody(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		for n := range 100 {
			hook := fmt.Sprint(n)
			w.hooks = append(w.hooks, hook)
			w.add(hook+"/1", hook+"/2")
		}
	}, func(w *world) {
		w.wait(5 * time.Second)
		before := w.asked("heads")
		w.wait(sweepSteps * sweepEvery)
		if n := w.asked("heads") - before; n > 100+int(sweepSteps*sweepEvery/doubtEvery) {
			t.Errorf("lines were read %d times in one sweep of 100 hooks", n)
		}
		if got := len(w.requests()); got != 200 || strings.Contains(fmt.Sprint(w.requests()), "hook") {
			t.Errorf("started %d", got)
		}
	})
}
