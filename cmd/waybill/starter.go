package main

import (
	"context"

	"github.com/spf13/cobra"
)

// starterCommand builds `waybill starter`; nil without work.
func starterCommand(p process, do func(context.Context, job) error) *cobra.Command {
	if do == nil {
		return nil
	}
	return &cobra.Command{
		Use:   "starter",
		Short: "Run only the starter",
		Long:  `Finds queued rows and starts their workflows, for hooks that a worker owns.`,
		Args:  cobra.NoArgs,
		RunE:  doing(p, do),
	}
}
