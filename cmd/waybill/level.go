package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"
)

// followLevel lets SIGUSR1 make the log say everything and SIGUSR2 what was
// configured again, until ctx ends: who looks for something must not have to
// restart the process that shows it.
func followLevel(ctx context.Context, j job) {
	configured := j.level.Level()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-signals:
				level := configured
				if s == syscall.SIGUSR1 {
					level = zap.DebugLevel
				}
				j.level.SetLevel(min(level, zap.InfoLevel)) // so that this is heard
				j.logger.Info("log level changed by a signal", zap.Stringer("to", level))
				j.level.SetLevel(level)
			}
		}
	}()
}
