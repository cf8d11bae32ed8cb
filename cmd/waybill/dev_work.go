package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"waybill/internal/devstack"
)

const (
	// devDir is where the demo keeps everything, in the folder it is started in.
	devDir       = ".waybill"
	devNamespace = "demo"
	// devRetryBackoff shows a retry while somebody is still watching.
	devRetryBackoff = "20s"
	// devBreakerWindow lets somebody who has broken a hook see it mended, too.
	devBreakerWindow = "60s"
	// devStop bounds the end of one server.
	devStop = 20 * time.Second
)

// demoStack is everything that `waybill dev` has started.
type demoStack struct {
	process
	options  devOptions
	lock     *os.File
	control  *control
	mariadb  *devstack.MariaDB
	temporal *devstack.Temporal
	receiver *devstack.Receiver
	demo     *devstack.Demo
	screen   *devstack.Screen
	job      job    // serve's
	bin      string // the temporal program
}

// runDev starts a complete system and shows what happens in it until ctx ends or
// nobody reads its output any more. Everything it started ends with it, in order,
// also when a later part fails.
func runDev(ctx context.Context, p process) (err error) {
	s := &demoStack{process: p}
	if s.options, err = loadDevOptions(p.getenv); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer survivePipes()()
	s.screen = devstack.NewScreen(devstack.ScreenConfig{
		Out: readOutput{p.stdout, cancel}, Clock: p.now, Quiet: s.options.quiet, Color: colored(p),
		Hooks: func() []devstack.Hook { return s.demo.Hooks() },
	})
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	return s.show(ctx)
}

// colored says whether the output may have colours: a terminal that knows them,
// and nobody who asked for none (https://no-color.org).
func colored(p process) bool {
	f, ok := p.stdout.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && p.getenv("NO_COLOR") == "" && p.getenv("TERM") != "dumb"
}

// start brings up the servers, the queue and the receiver.
func (s *demoStack) start(ctx context.Context) (err error) {
	if err := s.preflight(ctx); err != nil {
		return err
	}
	if s.control, err = startControl(ctx); err != nil {
		return err
	}
	s.line("Starting a complete Waybill in %s/ ...", devDir)
	if s.first() {
		s.line("  (the first start makes MariaDB's data directory, about ten seconds)")
	}
	s.mariadb, err = devstack.StartMariaDB(ctx, devstack.MariaDBConfig{Dir: filepath.Join(devDir, "mariadb")})
	if err != nil {
		return fmt.Errorf("starting MariaDB: %w", err)
	}
	s.line("  MariaDB     %s", s.mariadb.Addr())
	s.temporal, err = devstack.StartTemporal(ctx, devstack.TemporalConfig{
		Bin: s.bin, Dir: filepath.Join(devDir, "temporal"),
		Port: s.options.port(temporalPort), UIPort: s.options.port(uiPort),
	})
	if err != nil {
		return fmt.Errorf("starting Temporal: %w", err)
	}
	s.line("  Temporal    %s", s.temporal.Addr())
	s.receiver, err = devstack.StartReceiver(ctx, devstack.ReceiverConfig{
		Addr: s.options.addr(receiverPort), Clock: s.now, OnCall: s.called,
	})
	if err != nil {
		return err
	}
	s.line("  receiver    %s", s.receiver.Addr())
	return s.fill(ctx)
}

// fill makes the demo Phorge queue and its first rows.
func (s *demoStack) fill(ctx context.Context) error {
	db, err := openDemo(s.mariadb)
	if err != nil {
		return err
	}
	if err := devstack.CreatePhorge(ctx, db, devNamespace); err != nil {
		return err
	}
	phorge := &devstack.Phorge{DB: db, Namespace: devNamespace}
	if s.demo, err = devstack.NewDemo(ctx, devstack.DemoConfig{Phorge: phorge, Receiver: s.receiver}); err != nil {
		return err
	}
	_, err = s.demo.Enqueue(ctx)
	return err
}

// show runs serve and the trickle of new rows. Whatever ends first ends all.
func (s *demoStack) show(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := devstack.KeepLog(serveLog()); err != nil {
		return err
	}
	log, err := os.OpenFile(serveLog(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	if s.job, err = newJob(s.serveProcess(io.MultiWriter(log, s.screen))); err != nil {
		return err
	}
	if err := s.writeEnvironment(); err != nil {
		return err
	}
	s.welcome()
	served := make(chan error, 1)
	go func() { served <- runServe(ctx, s.job); cancel() }()
	go func() { _ = s.demo.Run(ctx) }()
	go s.tick(ctx)
	died := make(chan error, 1)
	go func() { died <- s.watchServers(ctx); cancel() }()
	s.control.stack.Store(s)
	<-ctx.Done()
	s.line("\nStopping: deliveries under way end first, then the servers ...")
	s.receiver.LetGo()
	return errors.Join(<-died, <-served)
}

// tick lets the screen sum up seconds after which nothing happens.
func (s *demoStack) tick(ctx context.Context) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-second.C:
			s.screen.Tick()
		}
	}
}

// watchServers waits until one of the servers dies, or the demo ends. It says
// at once what has happened: the rest takes ten seconds to end.
func (s *demoStack) watchServers(ctx context.Context) error {
	var name, log string
	select {
	case <-ctx.Done():
		return nil
	case <-s.mariadb.Exited():
		name, log = "MariaDB", s.mariadb.LogFile()
	case <-s.temporal.Exited():
		name, log = "the Temporal server", s.temporal.LogFile()
	}
	err := fmt.Errorf("%s has ended by itself; its log is %s", name, log)
	s.line("\n%s.", sentence(err.Error()))
	return err
}

// sentence is an error's text as the beginning of a sentence.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func serveLog() string { return filepath.Join(devDir, "serve.log") }

// serveProcess is this process as serve sees it: the demo's settings before
// the environment's, and its log in a file.
func (s *demoStack) serveProcess(log io.Writer) process {
	p := s.process
	settings := s.settings()
	p.getenv = func(name string) string {
		if v, ok := settings[name]; ok {
			return v
		}
		return s.getenv(name)
	}
	// The screen reads the log.
	settings["WAYBILL_LOG_FORMAT"] = "json"
	if s.getenv("WAYBILL_LOG_LEVEL") != "debug" {
		settings["WAYBILL_LOG_LEVEL"] = "info"
	}
	p.stderr, p.terminal = log, false
	return p
}

// settings point a Waybill at the demo.
func (s *demoStack) settings() map[string]string {
	settings := map[string]string{
		"WAYBILL_HERALD_DSN":       s.mariadb.DSN(devNamespace + "_herald"),
		"WAYBILL_DSN":              s.mariadb.DSN("waybill"),
		"WAYBILL_TEMPORAL_ADDRESS": s.temporal.Addr(),
		"WAYBILL_LISTEN":           s.options.addr(apiPort),
		"WAYBILL_HERALD_ALLOW":     "127.0.0.0/8",
	}
	maps.Copy(settings, pace(s.getenv))
	return settings
}

// pace is how long the demo's rests are, unless somebody has chosen. A choice is
// among the settings too: other commands find them in a file and must see the same.
func pace(getenv func(string) string) map[string]string {
	const backoff, window = "WAYBILL_HERALD_RETRY_BACKOFF", "WAYBILL_HERALD_BREAKER_WINDOW"
	return map[string]string{
		backoff: cmp.Or(getenv(backoff), devRetryBackoff),
		window:  cmp.Or(getenv(window), devBreakerWindow),
	}
}

// called says when a receiver would not have believed a call. All others are
// shown as Waybill saw them.
func (s *demoStack) called(r devstack.Received) {
	if !r.Verified {
		s.line("%s  SIGNATURE WRONG: the receiver refused a call to /%s", s.now().Format(time.TimeOnly), r.Endpoint)
	}
}

func (s *demoStack) line(format string, values ...any) { s.screen.Say(format, values...) }

// stop ends what was started, the last first.
func (s *demoStack) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*devStop)
	defer cancel()
	var failures []error
	if s.control != nil {
		failures = append(failures, s.control.close())
	}
	if s.receiver != nil {
		failures = append(failures, s.receiver.Close())
	}
	if s.temporal != nil {
		failures = append(failures, s.temporal.Stop(ctx))
	}
	if s.mariadb != nil {
		failures = append(failures, s.mariadb.Stop(ctx))
		s.line("Stopped. Data is kept in %s/; `make clean-dev` forgets it.", devDir)
	}
	if s.lock != nil {
		_ = s.lock.Close() // the last: until here the folder is in use
	}
	return errors.Join(failures...)
}
