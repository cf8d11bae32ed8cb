package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"waybill/internal/devstack/stacktest"
)

// patience names the variable that turns this test binary into a process
// which waits for signals.
const patience = "WAIT_FOR_SIGNALS"

func TestMain(m *testing.M) {
	if os.Getenv(patience) == "" {
		stacktest.Main(m)
	}
	ctx := untilSignal(context.Background(), os.Exit)
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("stopping")
	// An orderly stop that never ends; the test kills what forgets to exit.
	time.Sleep(time.Minute)
}

func TestSignals(t *testing.T) {
	// Whoever started the tests may ignore it, as nohup does, and children inherit
	// that; what is caught here is theirs as usual again.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for _, pair := range [][2]syscall.Signal{
		{syscall.SIGINT, syscall.SIGINT}, {syscall.SIGTERM, syscall.SIGTERM}, {syscall.SIGTERM, syscall.SIGINT},
		{syscall.SIGHUP, syscall.SIGTERM},
	} {
		t.Run(fmt.Sprint(pair), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			child := exec.CommandContext(ctx, os.Args[0])
			child.Env = append(os.Environ(), patience+"=1")
			out, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			said := bufio.NewScanner(out)
			for i, word := range []string{"ready", "stopping"} {
				if !said.Scan() || said.Text() != word {
					t.Fatalf("the child says %q, want %q", said.Text(), word)
				}
				if err := child.Process.Signal(pair[i]); err != nil {
					t.Fatal(err)
				}
			}
			var exit *exec.ExitError
			if err := child.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitFailed {
				t.Errorf("the child ended with %v", err)
			}
		})
	}
}
