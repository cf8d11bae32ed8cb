package main

import (
	"context"

	"github.com/spf13/cobra"
)

// work is what stands behind the commands that need the rest of Waybill. A
// command whose field is nil is left out of the tree: better no command than
// one that pretends.
type work struct {
	dev     func(context.Context, process) error // makes its own configuration
	serve   func(context.Context, job) error
	worker  func(context.Context, job) error
	starter func(context.Context, job) error
	api     func(context.Context, job) error
	migrate func(context.Context, job) error
	hooks   hookWork
	doctor  func(context.Context, job, examination) error

	requests requestWork
}

// hookWork stands behind `waybill hooks`.
type hookWork struct {
	list    func(ctx context.Context, j job, asJSON bool) error
	show    func(ctx context.Context, j job, phid string, asJSON bool) error
	pause   func(context.Context, job, hookChange) error
	release func(context.Context, job, hookChange) error
	resume  func(context.Context, job, hookChange) error
}

// requestWork stands behind `waybill requests`.
type requestWork struct {
	list  func(context.Context, job, listing) error
	show  func(ctx context.Context, j job, request string, asJSON bool) error
	retry func(context.Context, job, retryWish) error
}

// wired is the work of this build.
func wired() work {
	return work{
		dev: runDev, serve: runServe, worker: runWorker, starter: runStarter, api: runAPI, migrate: runMigrate,
		doctor: runDoctor,
		hooks:  hookWork{list: listHooks, show: showHook, pause: pauseHooks, release: releaseHooks, resume: resumeHooks},

		requests: requestWork{list: listRequests, show: showRequest, retry: retryRequests},
	}
}

// commands builds the commands that have work behind them.
func (w work) commands(p process) []*cobra.Command {
	all := []*cobra.Command{
		devCommand(p, w.dev),
		serveCommand(p, w.serve),
		workerCommand(p, w.worker),
		starterCommand(p, w.starter),
		apiCommand(p, w.api),
		migrateCommand(p, w.migrate),
		doctorCommand(p, w.doctor),
		hooksCommand(p, w.hooks),
		requestsCommand(p, w.requests),
	}
	var present []*cobra.Command
	for _, command := range all {
		if command != nil {
			present = append(present, command)
		}
	}
	return present
}
