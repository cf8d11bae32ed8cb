package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"waybill/internal/config"
)

// environmentTopic is the help topic about the variables. Without a body of
// its own cobra lists it as a topic and not among the commands.
func environmentTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "environment",
		Short: "Every environment variable with its default",
		Long:  environmentText(config.Describe()),
	}
}

// environmentText lists the variables as paragraphs, which stay readable in a
// terminal of any width.
func environmentText(entries []config.Entry) string {
	var b strings.Builder
	b.WriteString(`Waybill is configured by these environment variables. An empty variable is the
same as an unset one. Durations are written like 500ms, 15s or 5m; lists are
separated by commas or spaces. ` + "`waybill config`" + ` prints the effective values.
`)
	for _, entry := range entries {
		fmt.Fprintf(&b, "\n  %s  (default: %s)\n      %s\n", entry.Name, entry.Default, entry.Help)
	}
	return b.String()
}
