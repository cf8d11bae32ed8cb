package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal returns a context that the first SIGINT, SIGTERM or SIGHUP (a
// terminal that is closed, unless that is ignored) ends, which starts an orderly
// stop. The second one means that somebody does not want to wait, and exits at
// once; what was under way then is an unknown outcome, as after a crash. It
// listens for the rest of the process' life.
func untilSignal(parent context.Context, exit func(int)) context.Context {
	ctx, cancel := context.WithCancel(parent)
	// Room for both signals: Notify drops what nobody receives in time.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // by nohup, say
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		cancel()
		<-signals
		exit(exitFailed)
	}()
	return ctx
}
