package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"

	"waybill/activities"
	"waybill/workflows"
)

func TestTemporalAway(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.hooks, w.broken["execute"] = []string{"a", "b"}, errAway
		w.add("a/1", "b/1")
	}, func(w *world) {
		w.wait(10 * time.Minute)
		if n := w.asked("execute"); n > 2*601 {
			t.Errorf("tried %d times in ten minutes", n)
		}
		if n := w.logged("Temporal does not answer"); n != 1 {
			t.Errorf("%d lines about it", n)
		}
		w.breaks("execute", nil)
		w.wait(2 * troubleRest)
		if got := w.requests(); len(got) != 2 {
			t.Errorf("started %q", got)
		}
		if n := w.logged("Temporal answers again"); n != 1 {
			t.Errorf("%d lines about the end", n)
		}
	})
}

// Starts that fail between two that work lose no row and no order.
func TestStartsThatFail(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.hooks = []string{"a"} }, func(w *world) {
		w.wait(time.Second)
		w.breaks("execute", errAway)
		w.add("a/1", "a/2")
		w.addAs(due, "a/r1")
		w.wait(5 * time.Second)
		w.expect()
		w.breaks("execute", nil)
		w.wait(30 * time.Second)
		got := w.requests()
		slices.Sort(got)
		if !slices.Equal(got, []string{"a/1", "a/2", "a/r1"}) {
			t.Errorf("started %q", got)
		}
	})
}

func TestQueueAwayAtTheStart(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.hooks, w.broken["newest"] = []string{"a"}, errAway
		w.add("a/1")
	}, func(w *world) {
		w.wait(10 * time.Second)
		w.expect()
		if n := w.logged("request table does not answer"); n != 1 {
			t.Errorf("%d lines about it", n)
		}
		w.breaks("newest", nil)
		w.wait(time.Second)
		w.expect("a/1")
	})
}

func TestStoppedWhileTheQueueIsAway(t *testing.T) {
	play(t, func(w *world, _ *Config) { w.broken["newest"] = errAway }, func(*world) {})
}

func TestQueueAwayUnderWay(t *testing.T) {
	for _, name := range []string{"since", "heads", "due"} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world, _ *Config) { w.hooks = []string{"a"} }, func(w *world) {
				w.wait(time.Second)
				w.breaks(name, errAway)
				w.add("a/1")
				before := w.asked(name)
				w.wait(time.Minute)
				if n := w.asked(name) - before; n > 700 {
					t.Errorf("asked %d times in a minute", n)
				}
				w.breaks(name, nil)
				w.wait(2 * troubleRest)
				w.expect("a/1")
			})
		})
	}
}

func TestOrphansThatCannotBeListed(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.broken["waiting"] = errAway
		w.add("gone/1")
	}, func(w *world) {
		w.wait(time.Minute)
		w.expect()
		w.breaks("waiting", nil)
		w.wait(orphanEvery)
		w.expect("gone/1")
	})
}

var errUnknownAttribute = serviceerror.NewInvalidArgument("Namespace default has no mapping defined for search attribute WaybillLane")

// A server that does not know the search attributes, a new one perhaps, gets
// the work without them, and is asked to learn them.
func TestAServerThatDoesNotKnowTheSearchAttributes(t *testing.T) {
	registered := 0
	play(t, func(w *world, cfg *Config) {
		w.hooks, w.broken["attributes"] = []string{"a"}, errUnknownAttribute
		cfg.Register = func(context.Context) error {
			registered++
			if registered == 1 {
				return errAway
			}
			w.breaks("attributes", nil)
			return nil
		}
		w.add("a/1")
	}, func(w *world) {
		w.expect("a/1")
		w.wait(2 * registerEvery)
		w.add("a/2")
		w.wait(registerEvery)
		if registered != 2 {
			t.Errorf("registered %d times", registered)
		}
		for _, s := range w.starts {
			if want := s.id == "request/a/2"; s.attributes != want {
				t.Errorf("%s started with attributes: %v", s.id, s.attributes)
			}
		}
	})
}

// Many find out at once when a server has lost its state; one line says it.
func TestALostSetOfSearchAttributesIsOneLine(t *testing.T) {
	play(t, func(w *world, _ *Config) {
		w.broken["attributes"], w.latency = errUnknownAttribute, time.Second
		for n := range 40 {
			w.hooks = append(w.hooks, fmt.Sprintf("h%02d", n))
		}
	}, func(w *world) {
		w.wait(time.Minute)
		if n := w.logged("does not take the search attributes"); n != 1 {
			t.Errorf("%d lines", n)
		}
		w.change(func() { w.latency = 0 })
		w.wait(2 * time.Second)
	})
}

// A server that refuses for good is worked with as it is.
func TestAServerThatRefusesSearchAttributes(t *testing.T) {
	play(t, func(w *world, cfg *Config) {
		cfg.Attributes = false
		w.hooks = []string{"a"}
		w.add("a/1")
	}, func(w *world) {
		w.wait(5 * time.Minute)
		w.expect("a/1")
		for _, s := range w.starts {
			if s.attributes {
				t.Errorf("%s started with attributes", s.id)
			}
		}
	})
}

// Whatever a starter waits for, it ends with its context and leaves nobody
// behind: play checks both.
func TestTheEndComesAtOnce(t *testing.T) {
	for name, prepare := range map[string]func(*world, *Config){
		"idle":              func(*world, *Config) {},
		"in an attempt":     func(w *world, _ *Config) { w.attempt = slowly(20 * time.Second); w.add("a/1") },
		"watching":          func(w *world, c *Config) { c.Watch, w.attempt = always, slowly(never); w.add("a/1") },
		"waiting for room":  func(w *world, _ *Config) { w.room = make(chan struct{}); w.add("a/1") },
		"while not owned":   func(w *world, _ *Config) { w.unowned["a"] = true },
		"with Temporal off": func(w *world, _ *Config) { w.broken["execute"] = errAway },
		"announcing":        func(w *world, _ *Config) { w.latency = 0; w.hooks = slices.Repeat(w.hooks, 20) },
		"behind a breaker": func(w *world, _ *Config) {
			w.attempt = func(*row) (activities.Ended, time.Duration) {
				return activities.Ended{State: activities.BreakerOpen, Wait: time.Hour}, 0
			}
			w.add("a/1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world, c *Config) { w.hooks = []string{"a"}; prepare(w, c) }, func(*world) {})
		})
	}
}

// inAnotherProcess delivers after a while, and nobody here hears of it.
func inAnotherProcess(w *world) func(*row) (activities.Ended, time.Duration) {
	return func(r *row) (activities.Ended, time.Duration) {
		time.AfterFunc(50*time.Millisecond, func() { w.change(func() { r.done = true }) })
		return activities.Ended{}, never
	}
}

// Attempts in other processes: their ends are looked for.
func TestWatchedAttempts(t *testing.T) {
	t.Run("completed", func(t *testing.T) {
		play(t, func(w *world, c *Config) {
			c.Watch, w.hooks, w.attempt = always, []string{"a"}, slowly(never)
			w.result = func(string) (workflows.RequestResult, error) {
				return workflows.RequestResult{State: activities.Won}, nil
			}
			w.add("a/1", "a/2", "a/3")
		}, func(w *world) { w.expect("a/1", "a/2", "a/3") })
	})
	t.Run("will be tried again", func(t *testing.T) {
		play(t, func(w *world, c *Config) {
			c.Watch, w.hooks, w.attempt = always, []string{"a"}, inAnotherProcess(w)
			w.add("a/1", "a/2")
		}, func(w *world) {
			w.wait(2 * watchEvery)
			w.expect("a/1", "a/2")
		})
	})
	t.Run("lost to the server", func(t *testing.T) {
		play(t, func(w *world, c *Config) {
			c.Watch, w.hooks, w.attempt = always, []string{"a"}, inAnotherProcess(w)
			w.result = func(string) (workflows.RequestResult, error) { return workflows.RequestResult{}, errAway }
			w.broken["unchanged"] = errAway
			w.add("a/1", "a/2")
		}, func(w *world) {
			w.wait(w.starter.cfg.AttemptWithin - time.Second)
			w.expect("a/1")
			w.wait(time.Second)
			w.expect("a/1", "a/2")
		})
	})
	t.Run("breaker", func(t *testing.T) {
		play(t, func(w *world, c *Config) {
			c.Watch, w.hooks = always, []string{"a"}
			w.attempt = func(*row) (activities.Ended, time.Duration) { return activities.Ended{}, never }
			w.result = func(string) (workflows.RequestResult, error) {
				return workflows.RequestResult{State: activities.BreakerOpen, Wait: 40 * time.Second}, nil
			}
			w.add("a/1")
		}, func(w *world) {
			w.wait(39 * time.Second)
			w.expect("a/1")
			w.wait(time.Second)
			w.expect("a/1", "a/1")
		})
	})
}

func TestNotesSayTheFirstAndTheEnd(t *testing.T) {
	play(t, nil, func(w *world) {
		n := &w.starter.notes
		ctx, cancel := context.WithCancel(w.t.Context())
		for range 3 {
			if n.note(ctx, "X", errAway) || n.note(ctx, "Y", nil) {
				t.Error("recovered without having been well, or ill")
			}
		}
		if !n.note(ctx, "X", nil) || n.note(ctx, "X", nil) {
			t.Error("recovers once")
		}
		cancel()
		if n.note(ctx, "X", errors.New("cancelled")) || w.logged("X does not answer") != 1 || w.logged("X answers again") != 1 {
			t.Errorf("lines: %v", w.logs.All())
		}
	})
}

// always watches every hook's attempts.
func always(string) bool { return true }
