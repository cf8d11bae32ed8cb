package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"waybill/internal/devstack"
)

// devCommand builds `waybill dev`; nil without work. It loads no
// configuration, because the system it starts is its configuration.
func devCommand(p process, do func(context.Context, process) error) *cobra.Command {
	if do == nil {
		return nil
	}
	command := &cobra.Command{
		Use:   "dev",
		Short: "Run a complete demo system on this machine",
		Long: `Starts Temporal with its Web UI, a private MariaDB, a demo queue with hooks, a
demo receiver and waybill serve, all on loopback. Prints what to open and what
to try, and then a line per delivery. Ctrl-C stops everything and keeps the
data. ` + "`waybill dev demo`" + ` drives it from another terminal.

The temporal program is the one that ` + devstack.TemporalVariable + ` names, else
.waybill/bin/temporal here or in a directory above, else the one on PATH.`,
		Args: cobra.NoArgs,
	}
	for _, port := range devPorts() {
		command.Flags().Int(port.flag, port.port, fmt.Sprintf("%s (%s)", port.what, port.variable))
	}
	command.Flags().Bool("quiet", false, "show no deliveries ("+devQuiet+"=1)")
	command.RunE = func(c *cobra.Command, _ []string) error {
		chosen := p
		chosen.getenv = flagsFirst(c, p.getenv)
		if _, err := loadDevOptions(chosen.getenv); err != nil {
			return err // wrong usage, as opposed to what goes wrong later
		}
		return failed(do(c.Context(), chosen))
	}
	command.AddCommand(demoCommand(p))
	return command
}

// flagsFirst is the environment as the flags change it: for `make run`, where
// a variable is handy, and for the command line, where a flag is.
func flagsFirst(c *cobra.Command, getenv func(string) string) func(string) string {
	set := map[string]string{}
	names := map[string]string{"quiet": devQuiet}
	for _, port := range devPorts() {
		names[port.flag] = port.variable
	}
	for flag, variable := range names {
		if c.Flags().Changed(flag) {
			set[variable] = c.Flags().Lookup(flag).Value.String()
		}
	}
	return func(name string) string {
		if value, ok := set[name]; ok {
			return value
		}
		return getenv(name)
	}
}
