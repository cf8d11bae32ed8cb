// Command waybill delivers webhooks durably. This package parses arguments,
// wires the other packages together and turns errors into exit codes; it
// decides nothing else, and nothing imports it.
//
// Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.
package main

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/term"
)

func main() {
	saveMemory(os.Getenv, debug.SetGCPercent)
	ctx := untilSignal(context.Background(), os.Exit)
	os.Exit(run(ctx, os.Args[1:], process{
		getenv:   os.Getenv,
		environ:  os.Environ(),
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		terminal: term.IsTerminal(int(os.Stderr.Fd())),
		now:      time.Now,
	}))
}
