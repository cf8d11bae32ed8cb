package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"waybill/internal/devstack"
)

// The demo's addresses, all on loopback; MariaDB takes a free port.
const (
	devDir          = ".waybill"
	devNamespace    = "demo"
	devTemporalPort = 7233
	devUIPort       = 8233
	devAPI          = "127.0.0.1:8160"
	devReceiver     = "127.0.0.1:8161"
	// devRetryBackoff shows a retry while somebody is still watching.
	devRetryBackoff = "20s"
	// devStop bounds the end of one server.
	devStop = 20 * time.Second
)

// demoStack is everything that `waybill dev` has started.
type demoStack struct {
	process
	mariadb  *devstack.MariaDB
	temporal *devstack.Temporal
	receiver *devstack.Receiver
	demo     *devstack.Demo
	bin      string // the temporal program, for the things to try
	screen   sync.Mutex
}

// runDev starts a complete system and shows what happens in it until ctx ends.
// Everything it started ends with it, in order, also when a later part fails.
func runDev(ctx context.Context, p process) (err error) {
	s := &demoStack{process: p}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	return s.show(ctx)
}

// start brings up the servers, the queue and the receiver.
func (s *demoStack) start(ctx context.Context) (err error) {
	s.line("Starting a complete Waybill in %s/ ...", devDir)
	if s.bin, err = devstack.FindTemporal(s.getenv); err != nil {
		return err
	}
	if err := free(ctx, devAPI); err != nil {
		return fmt.Errorf("the API's address: %w", err)
	}
	s.mariadb, err = devstack.StartMariaDB(ctx, devstack.MariaDBConfig{Dir: filepath.Join(devDir, "mariadb")})
	if err != nil {
		return fmt.Errorf("starting MariaDB: %w", err)
	}
	s.line("  MariaDB     %s", s.mariadb.Addr())
	s.temporal, err = devstack.StartTemporal(ctx, devstack.TemporalConfig{
		Bin: s.bin, Dir: filepath.Join(devDir, "temporal"), Port: devTemporalPort, UIPort: devUIPort,
	})
	if err != nil {
		return fmt.Errorf("starting Temporal: %w", err)
	}
	s.line("  Temporal    %s", s.temporal.Addr())
	s.receiver, err = devstack.StartReceiver(ctx, devstack.ReceiverConfig{Addr: devReceiver, Clock: s.now, OnCall: s.called})
	if err != nil {
		return fmt.Errorf("demo receiver on %s: %w", devReceiver, err)
	}
	s.line("  receiver    %s", s.receiver.Addr())
	return s.fill(ctx)
}

// free reports an address that somebody else listens on, before anything is
// started that would have to be stopped again.
func free(ctx context.Context, address string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
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
	log, err := os.OpenFile(filepath.Join(devDir, "serve.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	j, err := newJob(s.serveProcess(log))
	if err != nil {
		return err
	}
	if err := s.writeEnvironment(); err != nil {
		return err
	}
	s.welcome()
	served := make(chan error, 1)
	go func() { served <- runServe(ctx, j); cancel() }()
	go func() { _ = s.demo.Run(ctx) }()
	go s.watchServers(ctx, cancel)
	<-ctx.Done()
	s.line("\nStopping: deliveries under way end first, then the servers ...")
	return <-served
}

// watchServers ends the demo when one of its servers dies.
func (s *demoStack) watchServers(ctx context.Context, cancel func()) {
	select {
	case <-ctx.Done():
		return
	case <-s.mariadb.Exited():
		s.line("MariaDB has ended; its log is %s.", s.mariadb.LogFile())
	case <-s.temporal.Exited():
		s.line("Temporal has ended; its log is %s.", s.temporal.LogFile())
	}
	cancel()
}

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
	p.stderr, p.terminal = log, false
	return p
}

// settings point a Waybill at the demo.
func (s *demoStack) settings() map[string]string {
	settings := map[string]string{
		"WAYBILL_HERALD_DSN":       s.mariadb.DSN(devNamespace + "_herald"),
		"WAYBILL_DSN":              s.mariadb.DSN("waybill"),
		"WAYBILL_TEMPORAL_ADDRESS": s.temporal.Addr(),
		"WAYBILL_LISTEN":           devAPI,
		"WAYBILL_HERALD_ALLOW":     "127.0.0.0/8",
	}
	if s.getenv("WAYBILL_HERALD_RETRY_BACKOFF") == "" {
		settings["WAYBILL_HERALD_RETRY_BACKOFF"] = devRetryBackoff
	}
	return settings
}

// called shows one delivery.
func (s *demoStack) called(r devstack.Received) {
	signature := "signature ok"
	if !r.Verified {
		signature = "SIGNATURE WRONG"
	}
	answer := fmt.Sprint(r.Status)
	if r.Status == 0 {
		answer = "no answer"
	}
	s.line("%s  %-8s %-9s  %s  %s", s.now().Format(time.TimeOnly), r.Endpoint, answer, signature, r.ObjectPHID)
}

func (s *demoStack) line(format string, values ...any) {
	s.screen.Lock()
	defer s.screen.Unlock()
	say(s.stdout, format, values...)
}

// stop ends what was started, the last first.
func (s *demoStack) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*devStop)
	defer cancel()
	var failures []error
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
	return errors.Join(failures...)
}
