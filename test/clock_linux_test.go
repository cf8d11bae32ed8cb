package acceptance

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
	"waybill/test/scenario"
)

// clocked is an installation whose database has a clock of its own, under a
// load of fast, slow and failing receivers. Linux only, like the clock.
type clocked struct {
	*scenario.Site
	server *devstack.MariaDB
	tally  *tally
	object map[string]devstack.Row // rows by the object that each is about
	hooks  []devstack.Hook
	serves []*scenario.Process
}

// newClocked starts it with two serve, which share the hooks as they do.
func newClocked(t *testing.T, ahead time.Duration) *clocked {
	t.Helper()
	c := stoppedClock(t)
	c.step(t, ahead)
	for _, path := range []string{"/fast", "/fast", "/slow", "/fails"} {
		c.hooks = append(c.hooks, hook(t, c.Site, c.tally.URL(path)))
	}
	settings := shortLease()
	// By Phorge's rule failures dated ahead keep a breaker open until the clock
	// has caught up; that is not what is shown here.
	settings["WAYBILL_HERALD_BREAKER_THRESHOLD"] = "1000"
	for range 2 {
		c.serves = append(c.serves, c.Serve(t, settings))
	}
	return c
}

// stoppedClock is the same without hooks and processes.
func stoppedClock(t *testing.T) *clocked {
	t.Helper()
	temporal := stacktest.Temporal(t)
	server, err := devstack.StartMariaDB(t.Context(), devstack.MariaDBConfig{
		Dir: filepath.Join(t.TempDir(), "mariadb"), Ephemeral: true, OwnClock: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Kill(); _ = server.Stop(context.Background()) })
	return &clocked{
		Site: scenario.NewSiteOn(t, &program, scenario.Servers{MariaDB: server, Temporal: temporal}), server: server,
		tally: newTally(t), object: map[string]devstack.Row{},
	}
}

// step sets the database's clock and looks whether that has had its effect.
func (c *clocked) step(t *testing.T, ahead time.Duration) {
	t.Helper()
	if err := c.server.SetClock(ahead); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	var seconds int64
	if err := c.DB.QueryRowContext(t.Context(), "SELECT UNIX_TIMESTAMP()").Scan(&seconds); err != nil {
		t.Fatal(err)
	}
	off := time.Unix(seconds, 0).Sub(before) - ahead
	if off < -2*time.Second || off > 2*time.Second {
		t.Fatalf("the database's clock is %v beside where it was set", off)
	}
}

// load queues n rows for each hook, about an object each.
func (c *clocked) load(t *testing.T, n int) {
	t.Helper()
	for range n {
		for _, h := range c.hooks {
			object := task(t, c.Site)
			c.object[object] = queue(t, c.Site, h, object, forever)
		}
	}
}

// settled waits until each row is sent, and wants one call answered 2xx for
// each, one failed one before it where the receiver refuses the first (the last
// hook's), and no other; and between the two at least apart, by the receiver's
// clock.
func (c *clocked) settled(t *testing.T, apart time.Duration) {
	t.Helper()
	for _, r := range c.object {
		await(t, c.Site, r.PHID, "sent", "okay")
	}
	for object, r := range c.object {
		calls := c.tally.About(object)
		want := 1
		if r.HookPHID == c.hooks[len(c.hooks)-1].PHID {
			want = 2
		}
		if len(calls) != want {
			t.Errorf("%d calls for row %s, want %d: %v", len(calls), r.PHID, want, calls)
			continue
		}
		if want == 2 && calls[1].Sub(calls[0]) < apart {
			t.Errorf("row %s was repeated after %v, before its backoff", r.PHID, calls[1].Sub(calls[0]))
		}
	}
}

// A database clock that is wrong but steady changes nothing at all.
func TestADatabaseClockAheadOrBehindChangesNothing(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ahead": 40 * time.Second, "behind": -40 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClocked(t, ahead)
			c.load(t, 6)
			// The backoff counts from the second of the failure, fractions cut off.
			c.settled(t, backoff-time.Second)
		})
	}
}

// Steps while rows flow delay at most: nothing is sent twice, nothing is left
// behind, no process loses its locks, and what is queued afterwards flows. Rows
// that failed before a step back rest a backoff and not until the clock has
// caught up.
func TestSteppingTheDatabaseClockUnderLoadNeitherDoublesNorStrands(t *testing.T) {
	t.Parallel()
	c := newClocked(t, 0)
	for _, ahead := range []time.Duration{40 * time.Second, time.Hour} {
		c.stepUnderLoad(t, ahead)
	}
	// A step ahead ends the backoffs that it jumps over.
	c.settled(t, 0)
	for _, ahead := range []time.Duration{0, -40 * time.Second, -time.Hour, 0} {
		c.stepUnderLoad(t, ahead)
	}
	c.step(t, -time.Hour)
	c.load(t, 1)
	c.settled(t, 0)
	for _, serve := range c.serves {
		if n := len(serve.Log.Find("nothing is sent")); n > 0 {
			t.Errorf("a step cost the locks: %s", serve.Log.Tail(10))
		}
	}
}

// stepUnderLoad moves the clock while rows are being sent.
func (c *clocked) stepUnderLoad(t *testing.T, ahead time.Duration) {
	t.Helper()
	before := c.tally.Calls()
	c.load(t, 2)
	scenario.Until(t, patience, "rows flow", func() bool { return c.tally.Calls() > before })
	c.step(t, ahead)
	c.load(t, 1)
}

// The lease of a claim whose sender was killed is a matter of the new owner's own
// clock: a step ahead does not end it, and one back does not draw it out.
func TestAStepOfTheDatabaseClockEndsNoLease(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"ahead": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := stoppedClock(t)
			gate := scenario.NewGate(t)
			r := queue(t, c.Site, hook(t, c.Site, gate.URL()), task(t, c.Site), forever)
			first := c.Serve(t, slowLease())
			gate.AwaitCall(t)
			first.Kill()
			killed := time.Now()
			// Its workflow would wait for the lost send by itself.
			if err := c.Temporal.TerminateWorkflow(t.Context(), "request/"+r.PHID, "", "only leases count here"); err != nil {
				t.Fatal(err)
			}
			c.step(t, step)
			gate.Open(200)
			c.Serve(t, slowLease())
			await(t, c.Site, r.PHID, "sent", "okay")
			if waited := time.Since(killed); waited < leaseOfSlow-2*time.Second {
				t.Errorf("repeated after %v, the lease is %v", waited, leaseOfSlow)
			}
			if n := gate.Calls(); n != 2 {
				t.Errorf("%d calls, want the killed one and one more", n)
			}
		})
	}
}

// Two clocks that differ mislead whoever reads logs beside rows.
func TestDoctorComparesTheClocks(t *testing.T) {
	t.Parallel()
	c := stoppedClock(t)
	finds(t, "the same", examined(t, c.Site, nil, "--watch", "0"), "clock", "ok", "agree")
	c.step(t, -2*time.Minute)
	finds(t, "behind", examined(t, c.Site, nil, "--watch", "0"), "clock", "warning", "behind this machine's")
}
