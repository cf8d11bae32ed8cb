package main

import (
	"context"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"waybill/internal/config"
	"waybill/internal/telemetry"
)

// job is what a command's work gets: its surroundings, ready for use.
type job struct {
	process
	config  config.Config
	logger  *zap.Logger
	level   zap.AtomicLevel // changes what logger writes, while it runs
	version string          // for the User-Agent and the log
}

// newJob loads the configuration and opens the log, which starts with what is
// odd about the settings.
func newJob(p process) (job, error) {
	settings, err := config.Load(p.getenv)
	if err != nil {
		return job{}, &configError{err}
	}
	logger, level, err := telemetry.NewLogger(telemetry.LogOptions{
		Level:    settings.Log.Level,
		Format:   settings.Log.Format,
		Terminal: p.terminal,
		Output:   p.stderr,
		Now:      p.now,
	})
	if err != nil {
		return job{}, &configError{err}
	}
	for _, warning := range oddities(settings, p.environ) {
		logger.Warn("configuration", zap.String("warning", warning))
	}
	return job{process: p, config: settings, logger: logger, level: level, version: version()}, nil
}

// oddities are the warnings about settings that work.
func oddities(settings config.Config, environ []string) []string {
	return append(settings.Warnings(), config.Unknown(environ)...)
}

// doing is the body of a command without arguments of its own: configuration
// first, then the work.
func doing(p process, do func(context.Context, job) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		prepared, err := newJob(p)
		if err != nil {
			return err
		}
		defer func() { _ = prepared.logger.Sync() }() // stderr may not support it
		return failed(do(c.Context(), prepared))
	}
}
