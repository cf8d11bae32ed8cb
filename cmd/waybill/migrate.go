package main

import (
	"context"

	"github.com/spf13/cobra"
)

// migrateCommand builds `waybill migrate`; nil without work.
func migrateCommand(p process, do func(context.Context, job) error) *cobra.Command {
	if do == nil {
		return nil
	}
	return &cobra.Command{
		Use:   "migrate",
		Short: "Prepare Waybill's database and Temporal's namespace",
		Long: `Creates or updates the tables of WAYBILL_DSN and registers the search attributes
with Temporal. Safe to repeat. Touches nothing in Phorge's databases.`,
		Args: cobra.NoArgs,
		RunE: doing(p, do),
	}
}
