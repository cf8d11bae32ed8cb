package devstack_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
)

// A database made by hand, or by a Waybill that registered fewer search
// attributes: the command line adds none to a namespace that exists.
func TestTemporalDatabaseWithoutTheSearchAttributes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "temporal.db")
	makeDatabase(t, temporalBin(t), file)

	srv := startTemporal(t, devstack.TemporalConfig{Dir: dir})
	c := dial(t, srv)
	if _, err := c.DescribeWorkflow(t.Context(), "from-before", ""); err != nil {
		t.Errorf("what was in the database is gone: %v", err)
	}
	runWorkflow(t, c, stacktest.Name("wf"))
}

// makeDatabase runs the server as a person would, starts one workflow that
// nobody works on, and stops it.
func makeDatabase(t *testing.T, bin, file string) {
	t.Helper()
	port := strconv.Itoa(unusedPort(t))
	server := exec.CommandContext(t.Context(), bin, "server", "start-dev", "--headless",
		"--ip", "127.0.0.1", "--port", port, "--db-filename", file)
	server.WaitDelay = time.Minute
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	}()
	c, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:" + port, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		opts := client.StartWorkflowOptions{ID: "from-before", TaskQueue: "nobody"}
		_, err := c.ExecuteWorkflow(ctx, opts, "none")
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the server by hand: %v", err)
		case <-tick.C:
		}
	}
}
