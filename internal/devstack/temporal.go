package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// temporalStart bounds a start. Two to four seconds are usual; with every core
// busy it has been seen to take twenty.
const temporalStart = 90 * time.Second

// TemporalConfig says how to run a Temporal development server.
type TemporalConfig struct {
	// Bin is the `temporal` program; see FindTemporal. Required.
	Bin string
	// Dir holds the database file, lock file and log. Required; created.
	Dir string
	// Port of the gRPC service on 127.0.0.1; 0 chooses a free one.
	Port int
	// UIPort of the Web UI on 127.0.0.1; 0 runs without it.
	UIPort int
	// DBFile is the SQLite file; empty for Dir/temporal.db.
	DBFile string
	// Log receives a line per step; nil for silence. The server's own output
	// goes to Dir/temporal.log; that of the run before is in Dir/temporal.log.1.
	Log io.Writer
	// LogLevel of the server: debug, info, warn, error, never; empty for warn.
	LogLevel string
	// Namespace to create; empty for "default", which always exists.
	Namespace string
}

// Temporal is a running development server. One goroutine starts and stops it;
// Addr, Namespace and UI may be called from any.
type Temporal struct {
	cfg  TemporalConfig
	lock *os.File
	port int
	proc *process
}

// dynamicConfig is the server's configuration for one machine with one SQLite
// file. The server accepts unknown keys without a word, so a typing mistake
// here costs speed and nothing says so; docs tell what each brought.
var dynamicConfig = []string{
	// Default 20 per shard: 50 ms for every workflow task that goes through
	// matching. One hook went from 20 to 54 deliveries/s with 200.
	"history.transferProcessorMaxPollRPS=200",
	// One writer anyway: partitions only add hops.
	"matching.numTaskqueueReadPartitions=1",
	"matching.numTaskqueueWritePartitions=1",
	// Visibility writes are the largest part of a delivery's cost; fewer polls
	// batch them.
	"history.visibilityProcessorMaxPollRPS=4",
	// The CLI's default rereads the search attributes at every use.
	"system.forceSearchAttributesCacheRefreshOnRead=false",
	// Quiet hooks beside a hog: median 12.2 s without, 3.0 s with.
	"matching.enableFairness=true",
}

// sqlitePragmas: DELETE journal and FULL sync, the defaults, halve the rate.
// NORMAL in WAL mode may lose the last commits at a power cut, never at a
// killed process, and never corrupts.
var sqlitePragmas = []string{"journal_mode=wal", "synchronous=normal"}

// StartTemporal starts a server and waits until it can be worked with: it
// reports healthy, knows the namespace, and queries accept Waybill's search
// attributes. Errors are those of StartMariaDB.
func StartTemporal(ctx context.Context, cfg TemporalConfig) (*Temporal, error) {
	if err := checkTemporal(cfg.Bin); err != nil {
		return nil, err
	}
	var err error
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	lock, err := lockDir(cfg.Dir, "temporal")
	if err != nil {
		return nil, err
	}
	t := &Temporal{cfg: cfg, lock: lock}
	// Once a run: further tries and restarts belong to it.
	if err = KeepLog(t.LogFile()); err == nil {
		err = t.launch(ctx)
	}
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return t, nil
}

func (c TemporalConfig) withDefaults() TemporalConfig {
	if c.DBFile == "" {
		c.DBFile = filepath.Join(c.Dir, "temporal.db")
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	if c.LogLevel == "" {
		c.LogLevel = "warn"
	}
	if c.Namespace == "" {
		c.Namespace = "default"
	}
	return c
}

func (t *Temporal) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, temporalStart)
	defer cancel()
	if t.cfg.UIPort != 0 {
		if err := checkPort(ctx, t.cfg.UIPort, "the Temporal Web UI"); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		err := t.choosePort(ctx)
		if err == nil {
			err = t.run(ctx)
		}
		if err == nil {
			fmt.Fprintf(t.cfg.Log, "Temporal ready on %s\n", t.Addr())
			return nil
		}
		// Besides the port below the server opens four of its own choosing,
		// which it can lose to others as well: worth another try always.
		// Beside other servers that start it loses the race by a panic now and
		// then, which says nothing about ports.
		if try == startTries || !errors.Is(err, ErrPortInUse) && !errors.Is(err, ErrExited) {
			return err
		}
		if t.cfg.Port == 0 && t.proc == nil {
			t.port = 0 // nobody knows it yet; a restart must come back on its own
		}
	}
}

// choosePort keeps the port of an earlier launch, so that clients find a
// restarted server.
func (t *Temporal) choosePort(ctx context.Context) (err error) {
	if t.port == 0 {
		t.port = t.cfg.Port
	}
	if t.port == 0 {
		t.port, err = freePort(ctx)
		return err
	}
	return checkPort(ctx, t.port, "Temporal")
}

func (t *Temporal) run(ctx context.Context) error {
	fmt.Fprintf(t.cfg.Log, "starting Temporal in %s\n", t.cfg.Dir)
	proc, err := command{path: t.cfg.Bin, args: t.arguments(), dir: t.cfg.Dir, logFile: t.LogFile()}.start()
	if err != nil {
		return fmt.Errorf("%s: %w", t.cfg.Bin, diskError(err))
	}
	probe, err := t.newProbe()
	if err != nil {
		proc.kill()
		return err
	}
	defer probe.close()
	if err := proc.watch(ctx, probe.ready); err != nil {
		proc.kill()
		return startError("Temporal", err, t.LogFile())
	}
	t.proc = proc
	return nil
}

func (t *Temporal) arguments() []string {
	args := []string{
		"server", "start-dev",
		"--ip", loopback,
		"--port", strconv.Itoa(t.port),
		"--db-filename", t.cfg.DBFile,
		"--log-level", t.cfg.LogLevel,
		"--namespace", t.cfg.Namespace,
	}
	if t.cfg.UIPort == 0 {
		args = append(args, "--headless")
	} else {
		args = append(args, "--ui-port", strconv.Itoa(t.cfg.UIPort))
	}
	for _, p := range sqlitePragmas {
		args = append(args, "--sqlite-pragma", p)
	}
	for _, v := range dynamicConfig {
		args = append(args, "--dynamic-config-value", v)
	}
	for _, name := range SearchAttributes() {
		args = append(args, "--search-attribute", name+"=Keyword")
	}
	return args
}

// SearchAttributes are the names Waybill registers, all of type Keyword.
func SearchAttributes() []string {
	return []string{"WaybillLane", "WaybillHook", "WaybillSubscription", "WaybillState"}
}

// LogFile is where the server writes what it has to say.
func (t *Temporal) LogFile() string { return filepath.Join(t.cfg.Dir, "temporal.log") }

// Addr is host:port of the gRPC service. It stays the same over Restart.
func (t *Temporal) Addr() string { return loopback + ":" + strconv.Itoa(t.port) }

// Namespace is the one to use.
func (t *Temporal) Namespace() string { return t.cfg.Namespace }

// UI is the address of the Web UI's page for the namespace, empty without UI.
func (t *Temporal) UI() string {
	if t.cfg.UIPort == 0 {
		return ""
	}
	return fmt.Sprintf("http://%s:%d/namespaces/%s/workflows", loopback, t.cfg.UIPort, t.cfg.Namespace)
}

// Signal sends the server a signal: SIGSTOP and SIGCONT make it hang and go on.
func (t *Temporal) Signal(s os.Signal) error { return t.proc.signal(s) }

// Exited is closed when the server process has ended, for whatever reason.
func (t *Temporal) Exited() <-chan struct{} { return t.proc.done }

// Stop ends the server cleanly and gives the directory free. When ctx ends
// first the server is killed and the error says so.
func (t *Temporal) Stop(ctx context.Context) error {
	err := t.proc.stop(ctx, "Temporal")
	_ = t.lock.Close()
	return err
}

// Halt ends the server cleanly and keeps the directory for Restart.
func (t *Temporal) Halt(ctx context.Context) error { return t.proc.stop(ctx, "Temporal") }

// Kill ends the server like a crash and keeps the directory for Restart. Stop
// afterwards is allowed and needed.
func (t *Temporal) Kill() { t.proc.kill() }

// Restart starts a server that was killed or halted again, on its port and
// data. It fails when the server still runs.
func (t *Temporal) Restart(ctx context.Context) error {
	if !t.proc.exited() {
		return fmt.Errorf("%w: Temporal still runs", ErrInUse)
	}
	return t.launch(ctx)
}

// Wipe deletes everything Temporal knew, as if its cluster had been lost. It
// fails while the server runs; Restart afterwards gives an empty one.
func (t *Temporal) Wipe() error {
	if !t.proc.exited() {
		return fmt.Errorf("%w: Temporal still runs", ErrInUse)
	}
	// SQLite's write-ahead log and its index belong to the file.
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(t.cfg.DBFile + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
