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
		Long: `Runs workflows and activities, and owns an equal share of the hooks with the
other workers. Needs a starter somewhere; a serve is one too.`,
		Args: cobra.NoArgs,
		RunE: doing(p, do),
	}
}
