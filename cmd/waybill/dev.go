package main

import (
	"context"

	"github.com/spf13/cobra"
)

// devCommand builds `waybill dev`; nil without work. It loads no
// configuration, because the system it starts is its configuration.
func devCommand(p process, do func(context.Context, process) error) *cobra.Command {
	if do == nil {
		return nil
	}
	return &cobra.Command{
		Use:   "dev",
		Short: "Run a complete demo system on this machine",
		Long: `Starts Temporal with its Web UI, a private MariaDB, a demo queue with hooks, a
demo receiver and waybill serve, all on loopback. Prints what to open and what
to try. Ctrl-C stops everything and keeps the data.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return failed(do(c.Context(), p)) },
	}
}
