package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"waybill/internal/config"
)

// configCommand builds `waybill config`.
func configCommand(p process) *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Check the configuration and print its effective values",
		Long: `Prints every setting with its effective value and where that came from, secrets
masked; warnings go to standard error. When anything is wrong it prints all faults
instead and exits with 2. Opens no connection.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			settings, err := config.Load(p.getenv)
			if err != nil {
				return &configError{err}
			}
			for _, warning := range oddities(settings, p.environ) {
				say(p.stderr, "warning: %s", warning)
			}
			return failed(printEntries(p.stdout, settings.Entries()))
		},
	}
}

// printEntries writes the table. Where there is no value, the default's
// description in parentheses says what holds instead.
func printEntries(w io.Writer, entries []config.Entry) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "VARIABLE\tVALUE\tSOURCE") // errors appear in Flush
	for _, entry := range entries {
		value := entry.Value
		if value == "" {
			value = "(" + entry.Default + ")"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", entry.Name, value, entry.Source)
	}
	return table.Flush()
}
