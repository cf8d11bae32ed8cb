package faults

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
	"waybill/test/scenario"
)

// What the command line can change.
var (
	seeds   = flag.Int("seeds", 4, "how many seeds to run, beside those that once failed")
	from    = flag.Uint64("from", 0, "the first of them; 0 takes the time of day")
	lasting = flag.Duration("lasting", 20*time.Second, "how long faults are made for one seed")
	lanes   = flag.Int("lanes", 2, "how many seeds run at once, each on servers of its own")
)

// program is built once for all seeds.
var program scenario.Binary

func TestMain(m *testing.M) {
	// The driver says of each connection that was cut that it was.
	_ = mysql.SetLogger(log.New(io.Discard, "", 0))
	stacktest.Main(m)
}

// Whatever happens, and to whom, each row comes to its right end, nothing is
// sent twice but where nobody knew the outcome, and nothing is left over.
func TestNoFaultLosesOrDoublesACall(t *testing.T) {
	stacktest.NeedsServers(t)
	sum := newSum()
	next := queueOf(choose(*seeds, *from))
	t.Run("lanes", func(t *testing.T) {
		for lane := range *lanes {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				on := startServers(t)
				for seed := range next {
					t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { run(t, worldOf{on: on, seed: seed}, sum) })
				}
			})
		}
	})
	t.Log(sum)
}

// Temporal's whole state is lost again and again under load, and a fresh cluster
// picks up: rows are the truth.
func TestALostTemporalLosesNoCall(t *testing.T) {
	stacktest.NeedsServers(t)
	sum := newSum()
	run(t, worldOf{on: startServers(t), seed: choose(1, *from)[len(onceFailed)], only: []string{"Temporal wiped"}}, sum)
	t.Log(sum)
}

// choose lists the seeds that once failed, and then n new ones.
func choose(n int, first uint64) []uint64 {
	if first == 0 {
		first = uint64(time.Now().Unix())
	}
	all := slices.Clone(onceFailed)
	for i := range uint64(max(n, 0)) {
		all = append(all, first+i)
	}
	return all
}

func queueOf(seeds []uint64) <-chan uint64 {
	next := make(chan uint64, len(seeds))
	for _, s := range seeds {
		next <- s
	}
	close(next)
	return next
}

// startServers starts what a lane runs on. Its database has a clock of its own.
func startServers(t *testing.T) scenario.Servers {
	t.Helper()
	bin, err := devstack.FindTemporal(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	var on scenario.Servers
	on.MariaDB, err = devstack.StartMariaDB(t.Context(), devstack.MariaDBConfig{
		Dir: filepath.Join(t.TempDir(), "mariadb"), Ephemeral: true, OwnClock: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { on.MariaDB.Kill(); _ = on.MariaDB.Stop(context.Background()) })
	on.Temporal, err = devstack.StartTemporal(t.Context(), devstack.TemporalConfig{
		Bin: bin, Dir: filepath.Join(t.TempDir(), "temporal"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { on.Temporal.Kill(); _ = on.Temporal.Stop(context.Background()) })
	return on
}

// sum adds up what the seeds came to.
type sum struct {
	mu                                         sync.Mutex
	seeds, rows, calls, unknown, repeats, kept int
	overwrites                                 int
	done                                       map[string]int
}

func newSum() *sum { return &sum{done: map[string]int{}} }

func (s *sum) add(w *world, v scenario.Verdict, e scenario.Evidence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seeds++
	s.rows += len(e.Rows)
	s.calls += v.Calls
	s.unknown += v.Unknown
	s.repeats += len(v.Repeats)
	s.overwrites += len(v.Overwrites)
	s.kept += len(e.Kept)
	for kind, n := range w.conductor.Counts() {
		s.done[kind] += n
	}
}

// count adds a fault that no move has made.
func (s *sum) count(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[kind]++
}

// String says it in a few lines.
func (s *sum) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kinds []string
	total := 0
	for _, kind := range slices.Sorted(maps.Keys(s.done)) {
		total += s.done[kind]
		kinds = append(kinds, fmt.Sprintf("%d x %s", s.done[kind], kind))
	}
	return fmt.Sprintf("%d seeds judged: %d rows, %d calls, %d successes in histories; %d unknown outcomes, %d repeats of them, %d finished rows overwritten by Phorge\n%d faults: %s",
		s.seeds, s.rows, s.calls, s.kept, s.unknown, s.repeats, s.overwrites, total, strings.Join(kinds, ", "))
}
