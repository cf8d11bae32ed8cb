package main

import (
	"context"

	"github.com/spf13/cobra"
)

// serveCommand builds `waybill serve`; nil without work.
func serveCommand(p process, do func(context.Context, job) error) *cobra.Command {
	if do == nil {
		return nil
	}
	return &cobra.Command{
		Use:   "serve",
		Short: "Run starter, worker and API in one process",
		Long: `Runs the starter, the worker and the HTTP interface in one process, until it is
interrupted. Deliveries under way are finished first; a second interrupt does
not wait for them.`,
		Args: cobra.NoArgs,
		RunE: doing(p, do),
	}
}
