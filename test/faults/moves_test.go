package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"waybill/test/scenario"
)

// serverWithin bounds a start or stop of a server on a busy machine.
const serverWithin = 2 * time.Minute

// actWithin bounds what Phorge does to a row or hook; a database that is away
// makes it fail.
const actWithin = 5 * time.Second

// moves are all that can be done, by kind.
func (w *world) moves() []scenario.Move {
	return []scenario.Move{
		{Kind: "SIGKILL", Weight: 3, Play: w.kill},
		{Kind: "SIGTERM", Weight: 2, Play: w.terminate},
		{Kind: "SIGSTOP beyond the lease", Weight: 2, Play: w.still},
		{Kind: "database connections cut", Weight: 2, Play: w.cut},
		{Kind: "database unheard", Play: w.freeze},
		{Kind: "database refused", Play: w.refuse},
		{Kind: "Temporal connections cut", Play: w.cutTemporal},
		{Kind: "Temporal unheard", Play: w.freezeTemporal},
		{Kind: "MariaDB killed", Play: w.killMariaDB},
		{Kind: "MariaDB restarted", Play: w.haltMariaDB},
		{Kind: "Temporal killed", Play: w.killTemporal},
		{Kind: "Temporal restarted", Play: w.haltTemporal},
		{Kind: "Temporal wiped", Play: w.wipeTemporal},
		{Kind: "clock moved", Play: w.moveClock},
		{Kind: "row deleted", Weight: 2, Play: w.collect},
		{Kind: "hook disabled", Play: w.disable},
		{Kind: "row failed by Phorge", Weight: 2, Play: w.fail},
		{Kind: "claim's answer late", Weight: 2, Play: w.delayClaim},
		{Kind: "claim overtaken", Weight: 2, Play: w.overtakeClaim},
	}
}

// weather is what may happen under one seed: half of all moves, so that some
// meet often that seldom would.
func weather(all []scenario.Move, chance *rand.Rand) []scenario.Move {
	chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:len(all)/2]
}

// seconds is a time between two, in seconds.
func seconds(chance *rand.Rand, least, most float64) time.Duration {
	return time.Duration((least + chance.Float64()*(most-least)) * float64(time.Second))
}

// member is one that runs, by chance, and mostly a worker: they have calls under
// way.
func (w *world) member(chance *rand.Rand) *scenario.Member {
	m := w.fleet.Any(w.t, chance)
	for range 2 {
		if m.Kind() != "worker" {
			m = w.fleet.Any(w.t, chance)
		}
	}
	return m
}

func (w *world) kill(chance *rand.Rand) bool {
	m := w.member(chance)
	if !w.take(m.Name()) {
		return false
	}
	m.Kill()
	m.Restart(w.t)
	w.give(m.Name())
	return true
}

// take and give are hold for what is over at once.
func (w *world) take(what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[what] {
		return false
	}
	w.held[what] = true
	return true
}

func (w *world) give(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, what)
}

// terminate asks a process to end, which it does in its own time and without
// leaving anything unknown, and starts another.
func (w *world) terminate(chance *rand.Rand) bool {
	m := w.member(chance)
	return w.hold(m.Name(), 0, func() {
		if code := m.Stop(w.t); code != 0 {
			w.t.Errorf("SIGTERM: %s ended with %d", m.Name(), code)
		}
		m.Restart(w.t)
	})
}

func (w *world) still(chance *rand.Rand) bool {
	m := w.member(chance)
	if !w.take(m.Name()) {
		return false
	}
	goOn := m.Still()
	w.give(m.Name())
	return w.hold(m.Name(), lease+seconds(chance, 1, 5), goOn)
}

// reached is a member by whose cables something is done.
func (w *world) reached(chance *rand.Rand) (m *scenario.Member, c scenario.Cables) {
	m = w.member(chance)
	w.mu.Lock()
	defer w.mu.Unlock()
	return m, w.cables[m.Name()]
}

// fault begins one of a member's process and says how it is ended.
func (w *world) fault(kind scenario.Kind, m *scenario.Member) (over func()) {
	f := scenario.Fault{Kind: kind, From: time.Now()}
	if m != nil {
		f.Who, f.PID = m.Name(), m.Process().PID()
	}
	return func() { f.To = time.Now(); w.fleet.Note(f) }
}

func (w *world) cut(chance *rand.Rand) bool {
	m, c := w.reached(chance)
	over := w.fault(scenario.Cut, m)
	c.MariaDB.Cut()
	over()
	return true
}

// freeze is for less or more than the lock session lives.
func (w *world) freeze(chance *rand.Rand) bool {
	m, c := w.reached(chance)
	over := w.fault(scenario.Frozen, m)
	return w.hold("database of "+m.Name(), seconds(chance, 1, 14), func() { c.MariaDB.Thaw(); over() }) && now(c.MariaDB.Freeze)
}

func now(do func()) bool { do(); return true }

func (w *world) refuse(chance *rand.Rand) bool {
	m, c := w.reached(chance)
	over := w.fault(scenario.Away, m)
	return w.hold("database of "+m.Name(), seconds(chance, 0.5, 6), func() { c.MariaDB.Accept(); over() }) && now(c.MariaDB.Gone)
}

// What is done to Temporal leaves no outcome unknown: whoever calls writes the
// result himself.
func (w *world) cutTemporal(chance *rand.Rand) bool {
	_, c := w.reached(chance)
	c.Temporal.Cut()
	return true
}

func (w *world) freezeTemporal(chance *rand.Rand) bool {
	m, c := w.reached(chance)
	return w.hold("Temporal of "+m.Name(), seconds(chance, 1, 14), c.Temporal.Thaw) && now(c.Temporal.Freeze)
}

// mariaDB ends the server in some way and starts it again after a while.
func (w *world) mariaDB(chance *rand.Rand, end func(context.Context) error) bool {
	if !w.take("MariaDB") {
		return false
	}
	ctx, cancel := w.within(serverWithin)
	defer cancel()
	over := w.fault(scenario.Away, nil)
	err := end(ctx)
	w.give("MariaDB")
	if err != nil {
		w.t.Errorf("MariaDB did not end: %v", err)
	}
	return w.hold("MariaDB", seconds(chance, 0, 4), func() { w.restart("MariaDB", w.on.MariaDB.Restart); over() })
}

// restart starts a server again; it belongs to the lane and outlives the seed.
func (w *world) restart(name string, start func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), serverWithin)
	defer cancel()
	if err := start(ctx); err != nil {
		w.t.Errorf("%s did not start again: %v", name, err)
	}
}

func (w *world) killMariaDB(chance *rand.Rand) bool {
	return w.mariaDB(chance, func(context.Context) error { w.on.MariaDB.Kill(); return nil })
}

func (w *world) haltMariaDB(chance *rand.Rand) bool { return w.mariaDB(chance, w.on.MariaDB.Halt) }

// temporal ends the server in some way and starts it again after a while.
func (w *world) temporal(chance *rand.Rand, end func(context.Context) error, again func(context.Context) error) bool {
	if !w.take("Temporal") {
		return false
	}
	ctx, cancel := w.within(serverWithin)
	defer cancel()
	err := end(ctx)
	w.give("Temporal")
	if err != nil {
		w.t.Errorf("Temporal did not end: %v", err)
	}
	return w.hold("Temporal", seconds(chance, 0, 4), func() { w.restart("Temporal", again) })
}

func (w *world) killTemporal(chance *rand.Rand) bool {
	return w.temporal(chance, func(context.Context) error { w.on.Temporal.Kill(); return nil }, w.on.Temporal.Restart)
}

func (w *world) haltTemporal(chance *rand.Rand) bool {
	return w.temporal(chance, w.on.Temporal.Halt, w.on.Temporal.Restart)
}

// wipeTemporal loses everything that Temporal knows. What an operator makes
// anew is the namespace.
func (w *world) wipeTemporal(chance *rand.Rand) bool {
	return w.temporal(chance,
		func(context.Context) error { w.on.Temporal.Kill(); return w.on.Temporal.Wipe() },
		func(ctx context.Context) error {
			err := w.on.Temporal.Restart(ctx)
			if err == nil {
				w.RegisterNamespace(w.t)
			}
			return err
		})
}

// farthest is how far the database's clock goes from the machine's: beyond the
// lease, and back, which the rows have to wait for.
const farthest = 12

func (w *world) moveClock(chance *rand.Rand) bool {
	ahead := time.Duration(chance.IntN(2*farthest+1)-farthest) * time.Second
	if !w.take("MariaDB") {
		return false
	}
	defer w.give("MariaDB")
	ctx, cancel := w.within(actWithin)
	defer cancel()
	return w.journal.Step(ctx, ahead, w.on.MariaDB.SetClock) == nil
}

func (w *world) collect(chance *rand.Rand) bool {
	ctx, cancel := w.within(actWithin)
	defer cancel()
	_, err := w.load.Collect(ctx, chance)
	return err == nil
}

func (w *world) fail(*rand.Rand) bool {
	ctx, cancel := w.within(actWithin)
	defer cancel()
	return w.load.Fail(ctx) == nil
}

// claimStatement is in a claim and in nothing else.
const claimStatement = "SET dateModified = LAST_INSERT_ID("

// delayClaim lets the answer to a claim come late: the lease runs meanwhile.
func (w *world) delayClaim(chance *rand.Rand) bool {
	m, c := w.reached(chance)
	if m.Kind() != "worker" {
		return false
	}
	held := c.MariaDB.Hold(scenario.Answer, claimStatement)
	return w.hold("claim of "+m.Name(), seconds(chance, 1, lease.Seconds()+2), held.Release)
}

// overtakeClaim saves a row between its claim and the answer to that.
func (w *world) overtakeClaim(chance *rand.Rand) bool {
	m, c := w.reached(chance)
	if m.Kind() != "worker" || !w.take("claim of "+m.Name()) {
		return false
	}
	defer w.give("claim of " + m.Name())
	held := c.MariaDB.Hold(scenario.Answer, claimStatement)
	defer held.Release()
	if !scenario.Within(w.t, actWithin, held.Reached) {
		return false
	}
	ctx, cancel := w.within(actWithin)
	defer cancel()
	row, err := w.load.Touch(ctx)
	if err != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.touched[row] = time.Now()
	return true
}

// disable switches a hook off for a while.
func (w *world) disable(chance *rand.Rand) bool {
	hook := pick(chance, w.hooks()...)
	if !w.take(hook.Name) {
		return false
	}
	ctx, cancel := w.within(actWithin)
	defer cancel()
	err := w.load.Disable(ctx, hook)
	w.give(hook.Name)
	return w.hold(hook.Name, seconds(chance, 0.5, 5), func() { w.enable(hook.Name) }) && err == nil
}

// enable does so as soon as the database is there.
func (w *world) enable(name string) {
	for _, h := range w.hooks() {
		if h.Name == name {
			scenario.Until(w.t, serverWithin, fmt.Sprint(name, " is enabled again"), func() bool {
				ctx, cancel := w.within(actWithin)
				defer cancel()
				return w.load.Enable(ctx, h) == nil
			})
		}
	}
}
