package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"waybill/api"
	"waybill/internal/heralddb"
	"waybill/internal/telemetry"
)

// runServe is starter, worker and API in one process.
func runServe(ctx context.Context, j job) error {
	return runRoles(ctx, j, roles{worker: true, starter: true}, mustListen)
}

// runWorker is a worker alone. It listens too, for probes and metrics, but
// gladly does without: several of them share a machine.
func runWorker(ctx context.Context, j job) error {
	return runRoles(ctx, j, roles{worker: true}, mayListen)
}

// runStarter is a starter alone.
func runStarter(ctx context.Context, j job) error {
	return runRoles(ctx, j, roles{starter: true}, mayListen)
}

// runAPI is the HTTP interface alone.
func runAPI(ctx context.Context, j job) error {
	return runRoles(ctx, j, roles{}, mustListen)
}

// listening says whether a process without its HTTP interface is worth having.
type listening bool

const (
	mustListen listening = true
	mayListen  listening = false
)

// errNoLane says that there is nothing to do.
var errNoLane = errors.New("no lane is configured: set WAYBILL_HERALD_DSN to the {namespace}_herald database of a Phorge, " +
	"for example waybill:secret@tcp(127.0.0.1:3306)/phabricator_herald")

// runRoles runs the HTTP interface and the lane until ctx ends, the interface
// last, so that probes see the stop.
func runRoles(ctx context.Context, j job, r roles, l listening) error {
	if !j.config.Herald.Enabled() {
		return &configError{errNoLane}
	}
	metrics, err := telemetry.NewProvider(j.logger)
	if err != nil {
		return err
	}
	tracing, err := telemetry.NewTracing(ctx, j.getenv, j.version, j.logger)
	if err != nil {
		return &configError{err}
	}
	defer endTracing(tracing)
	followLevel(ctx, j)
	h := newHealth()
	lane, err := newHeraldLane(j, r, metrics, h)
	if err != nil {
		return err
	}
	lane.tracing = tracing
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", j.config.API.Listen)
	if err != nil && l == mustListen {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	if err != nil {
		j.logger.Warn("no HTTP interface: the address is taken", zap.String("listen", j.config.API.Listen))
		served <- nil
	} else {
		server := api.Server(j.config.API.Listen, httpInterface(j, lane.rows, metrics.Handler(), h))
		server.ErrorLog = zap.NewStdLog(j.logger.Named("http"))
		j.logger.Info("listening", zap.String("address", listener.Addr().String()))
		go func() { served <- api.Serve(serving, listener, server) }()
	}
	context.AfterFunc(ctx, func() { h.trouble(stopping) })
	err = lane.run(ctx)
	stop()
	return errors.Join(err, <-served)
}

// lastSpansWithin bounds waiting for a collector at the end.
const lastSpansWithin = 3 * time.Second

func endTracing(t *telemetry.Tracing) {
	ctx, cancel := context.WithTimeout(context.Background(), lastSpansWithin)
	defer cancel()
	_ = t.Shutdown(ctx) // spans that nobody takes are dropped
}

func httpInterface(j job, rows *heralddb.DB, metrics http.Handler, h *health) http.Handler {
	token := ""
	if j.config.API.Token.Set() {
		token = j.config.API.Token.Reveal()
	}
	return api.New(api.Config{
		Counts: rows, Ready: h.ready, Metrics: metrics, Token: token, Now: j.now, Logger: j.logger,
	})
}
