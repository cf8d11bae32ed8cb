package main

import (
	"context"

	"github.com/spf13/cobra"
)

// apiCommand builds `waybill api`; nil without work.
func apiCommand(p process, do func(context.Context, job) error) *cobra.Command {
	if do == nil {
		return nil
	}
	return &cobra.Command{
		Use:   "api",
		Short: "Run only the HTTP interface",
		Long:  `Answers diagnostics, liveness, readiness and metrics on WAYBILL_LISTEN. Reads only.`,
		Args:  cobra.NoArgs,
		RunE:  doing(p, do),
	}
}
