package main

import (
	"context"

	"github.com/spf13/cobra"
)

// workerCommand builds `waybill worker`; nil without work.
func workerCommand(p process, do func(context.Context, job) error) *cobra.Command {
	if do == nil {
		return nil
	}
	return &cobra.Command{
		Use:   "worker",
		Short: "Run only the worker",
		Long: `Runs workflows and activities, and owns hooks: the processes that run a worker
share the hooks out among themselves. Needs a starter somewhere.`,
		Args: cobra.NoArgs,
		RunE: doing(p, do),
	}
}
