package faults

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// What the processes are told, and what follows for the judge. The lease is
// raised to the time within which a call begins, the delivery timeout and the
// write allowance.
const (
	startWithin = 5 * time.Second
	lease       = startWithin + 5*time.Second
	backoff     = 3 * time.Second
)

func settings() map[string]string {
	return map[string]string{
		"WAYBILL_HERALD_DELIVERY_TIMEOUT": "4s", "WAYBILL_HERALD_WRITE_ALLOWANCE": "1s", "WAYBILL_HERALD_CLAIM_LEASE": "1s",
		"WAYBILL_HERALD_RETRY_BACKOFF": backoff.String(),
		// Hooks that are to fail and recover would be stopped by it.
		"WAYBILL_HERALD_BREAKER_THRESHOLD": "100000",
	}
}

// Bounds of a seed.
const (
	// everyMove is the middle of the pause between two moves.
	everyMove = 1200 * time.Millisecond
	// everyRow is the pause between two rows of a hook: little more than what a
	// slow receiver takes.
	everyRow = 450 * time.Millisecond
	// settleWithin is for the end of all rows once everything has healed: two
	// leases, a clock that was put back, and a busy machine.
	settleWithin = 3 * time.Minute
)

// world is one seed's installation, and what can be done to it.
type world struct {
	*scenario.Site
	t         *testing.T
	on        scenario.Servers
	fleet     *scenario.Fleet
	load      *scenario.Load
	journal   *scenario.Journal
	witness   *scenario.Witness
	conductor scenario.Conductor
	phorge    *scenario.Taskmasters

	healing chan struct{}  // closed: whatever was done is undone now
	undoing sync.WaitGroup // what is still to be undone

	mu     sync.Mutex
	cables map[string]scenario.Cables // by member
	held   map[string]bool            // what is being done to, and cannot be done again
	// touched are the rows that were saved between their claim and its answer.
	touched map[string]time.Time
}

// run plays one seed and judges it, and what is left over.
func run(t *testing.T, of worldOf, total *sum) {
	began := time.Now()
	chance := of.chance()
	unstick(t, of.on, total)
	w := newWorld(t, of)
	defer w.watchTemporal(total)()
	if of.only == nil {
		w.conductor.Moves = weather(w.conductor.Moves, chance)
	}
	fresh := w.goroutines()
	w.play(chance, chance.IntN(4))
	w.load.AwaitDone(t, settleWithin)
	w.nothingOpen()
	w.nothingGrown(fresh)
	e := w.evidence()
	v := e.Judge()
	v.Report(t)
	w.showWrong(v, e)
	w.countsAgree()
	w.stop()
	total.add(w, v, e)
	t.Logf("%s; %d rows, %d calls, %d retries, %d unknown outcomes, %d repeats, %d overwritten; Phorge's turns %v; %v",
		w.conductor.Played(), len(e.Rows), v.Calls, v.Retries, v.Unknown, len(v.Repeats), len(v.Overwrites), w.phorge.Turns(),
		time.Since(began).Round(time.Second))
}

// play lets the load come, beside so many taskmasters of Phorge's, and the
// conductor do what he likes, and heals all.
func (w *world) play(chance *rand.Rand, phorges int) {
	w.load.Queue(w.t, 2+chance.IntN(8), devstack.RetryForever)
	stop := w.load.Stream(w.t, everyRow, pick(chance, devstack.RetryForever, devstack.RetryNever))
	w.phorge = scenario.NewTaskmasters(w.t, w.load, phorges)
	w.conductor.Conduct(w.t, int(*lasting/everyMove))
	stop()
	w.phorge.End()
	w.heal()
}

func pick[T any](chance *rand.Rand, from ...T) T { return from[chance.IntN(len(from))] }

// worldOf is what a world is made of.
type worldOf struct {
	on   scenario.Servers
	seed uint64
	// program is another one than this tree's, nil for that.
	program *scenario.Binary
	// only are the kinds of moves that are made, nil for what the seed chooses.
	only []string
}

// chance is what decides all that is left to chance.
func (of worldOf) chance() *rand.Rand {
	return rand.New(rand.NewPCG(of.seed, 1))
}

// moves are those that may be made.
func (of worldOf) moves(all []scenario.Move) []scenario.Move {
	if of.only == nil {
		return all
	}
	return slices.DeleteFunc(all, func(m scenario.Move) bool { return !slices.Contains(of.only, m.Kind) })
}

// newWorld installs everything and starts two processes of each role.
func newWorld(t *testing.T, of worldOf) *world {
	t.Helper()
	if of.program == nil {
		of.program = &program
	}
	site := scenario.NewSiteOn(t, of.program, of.on)
	w := &world{
		Site: site, t: t, on: of.on, journal: scenario.NewJournal(t, site.Phorge, time.Now),
		fleet: scenario.NewFleet(site, settings(), time.Now), conductor: scenario.Conductor{Seed: of.seed, Every: everyMove},
		healing: make(chan struct{}), cables: map[string]scenario.Cables{}, held: map[string]bool{}, touched: map[string]time.Time{},
	}
	w.fleet.Dress, w.conductor.Moves = w.dress, of.moves(w.moves())
	t.Cleanup(w.heal)
	t.Cleanup(w.showServers)
	w.witness = scenario.NewWitness(t, scenario.WitnessConfig{Now: time.Now, Callers: w.fleet.PIDs})
	w.load = scenario.NewLoad(t, site, w.witness)
	// Slow ones have a call under way most of the time.
	w.load.AddHooks(t, 6, scenario.Slow)
	for _, behaviour := range []string{
		scenario.Fast, scenario.Recovering, scenario.Faltering, scenario.Flapping, scenario.Bursting, scenario.Breaking,
		scenario.Halving, scenario.Slamming,
	} {
		w.load.AddHooks(t, 1, behaviour)
	}
	for _, role := range []string{"worker", "starter", "api"} {
		w.fleet.Launch(t, 2, role)
	}
	w.fleet.AwaitReady(t)
	return w
}

// dress gives a member cables of its own.
func (w *world) dress(name string) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, laid := w.cables[name]
	if !laid {
		c = w.NewCables(w.t)
		w.cables[name] = c
	}
	return w.Through(w.t, c, nil)
}

// heal undoes whatever was done, and waits until that has happened.
func (w *world) heal() {
	w.mu.Lock()
	select {
	case <-w.healing:
	default:
		close(w.healing)
	}
	w.mu.Unlock()
	w.undoing.Wait()
}

// hold takes something for a while, so that nobody else does anything to it, and
// gives it back when undo is over, after d or when everything heals. false: it
// is taken.
func (w *world) hold(what string, d time.Duration, undo func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[what] {
		return false
	}
	w.held[what] = true
	w.undoing.Go(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-w.healing:
		}
		undo()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.held, what)
	})
	return true
}

// evidence is everything that is left behind.
func (w *world) evidence() scenario.Evidence {
	e := scenario.Gather(w.t, w.load, w.journal, w.fleet, scenario.Rules{
		// An answer is written within the allowance or given up.
		Lease: lease, Backoff: backoff, WriteWithin: time.Second, UseWithin: startWithin,
	})
	e.Kept, e.Saved, e.Touched = w.Kept(w.t), w.phorge.Saved(), w.touched
	return e
}

// showServers shows what the servers said last when a seed has failed.
func (w *world) showServers() {
	if !w.t.Failed() {
		return
	}
	for _, file := range []string{w.on.MariaDB.LogFile(), w.on.Temporal.LogFile()} {
		said, err := os.ReadFile(file)
		w.t.Logf("the end of %s (%v):\n%s", filepath.Base(file), err, said[max(0, len(said)-serverShown):])
	}
}

// serverShown is how many bytes of a server's log are shown.
const serverShown = 4 << 10

// storiesShown keeps a seed that went wrong altogether readable.
const storiesShown = 5

// showWrong shows all that is known about the first rows that something is wrong
// with.
func (w *world) showWrong(v scenario.Verdict, e scenario.Evidence) {
	for _, f := range e.Faults {
		if len(v.Wrong) > 0 {
			w.t.Logf("%s of %s (%d) from %v to %v", f.Kind, f.Who, f.PID, f.From.UTC(), f.To.UTC())
		}
	}
	shown := 0
	for _, row := range e.Rows {
		about := func(wrong string) bool { return strings.Contains(wrong, row.PHID) }
		if shown < storiesShown && slices.ContainsFunc(v.Wrong, about) {
			shown++
			w.t.Log(e.Story(row.PHID))
			w.logsAbout(row.PHID)
		}
	}
}

// logsAbout shows what the processes said about a row.
func (w *world) logsAbout(row string) {
	for _, p := range w.fleet.Processes() {
		for _, line := range p.Log.Find("", row) {
			w.t.Logf("process %d: %v", p.PID(), line)
		}
	}
}

// within is a context for one act on a server.
func (w *world) within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.t.Context(), d)
}

// hooks are those of the load by name.
func (w *world) hooks() []devstack.Hook {
	all := w.load.Hooks()
	slices.SortFunc(all, func(a, b devstack.Hook) int { return strings.Compare(a.Name, b.Name) })
	return all
}
