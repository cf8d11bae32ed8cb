package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// process is everything that a command may take from the world around it.
type process struct {
	getenv         func(string) string
	environ        []string // NAME=value, only searched for unknown names
	stdout, stderr io.Writer
	terminal       bool // whether stderr, where the log goes, is a terminal
	now            func() time.Time
}

// The exit codes. Nothing else is ever returned, apart from what a shell makes
// of a signal.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2 // also: configuration
)

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, p process) int { return runWith(ctx, args, p, wired()) }

// runWith is run with other work behind the commands.
func runWith(ctx context.Context, args []string, p process, w work) int {
	root := rootCommand(p, w)
	help := &watched{to: p.stdout}
	root.SetOut(help)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = failed(help.err)
	}
	var broken *workError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &broken):
		say(p.stderr, "waybill: %v", broken.err)
		return exitFailed
	}
	say(p.stderr, "waybill: %v", err)
	var faulty *configError
	if !errors.As(err, &faulty) {
		say(p.stderr, "Try `waybill help`.")
	}
	return exitUsage
}

// watched is the output for help. Its error is kept, because cobra prints it and
// calls the command a success.
type watched struct {
	to  io.Writer
	err error // the first
}

func (w *watched) Write(text []byte) (int, error) {
	n, err := w.to.Write(text)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// workError marks an error of a command's work, as opposed to one of its
// arguments, which is all that cobra itself reports.
type workError struct{ err error }

func (e *workError) Error() string { return e.err.Error() }
func (e *workError) Unwrap() error { return e.err }

// configError marks faults of the configuration.
type configError struct{ err error }

func (e *configError) Error() string {
	return "the configuration has faults\n" + e.err.Error() + "\nSee `waybill help environment`."
}
func (e *configError) Unwrap() error { return e.err }

// failed marks err as an error of the work; nil stays nil, and a fault of the
// configuration stays one, wherever it is found.
func failed(err error) error {
	var faulty *configError
	if err == nil || errors.As(err, &faulty) {
		return err
	}
	return &workError{err}
}

// say writes a line for people. A closed pipe at the other end is not worth
// another failure.
func say(w io.Writer, format string, values ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", values...)
}

// rootCommand builds the tree of commands.
func rootCommand(p process, w work) *cobra.Command {
	root := &cobra.Command{
		Use:   "waybill",
		Short: "Durable webhook delivery with proof",
		Long: `Waybill delivers webhooks durably: every delivery is a Temporal workflow, the
facts stay in MySQL, and each result says how much is proved.

Settings come from the environment: waybill help environment.
Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.`,
		Args:              cobra.NoArgs,
		SilenceErrors:     true, // run prints them, once
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}, // completionCommand is ours
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetErr(p.stderr)
	root.SetHelpCommand(helpCommand())
	root.AddCommand(w.commands(p)...)
	root.AddCommand(configCommand(p), healthcheckCommand(p), versionCommand(), completionCommand(), environmentTopic())
	return root
}

// helpCommand replaces cobra's, which calls an unknown topic a success.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about a command, or about the environment",
		RunE: func(c *cobra.Command, args []string) error {
			topic, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return errors.New("there is no such help topic")
			}
			return topic.Help()
		},
	}
}
