package devstack_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.temporal.io/sdk/client"

	"waybill/internal/devstack"
)

// synchronous belongs to a connection and leaves no trace in the file. What
// shows is the number of times the server waits for the disk: NORMAL waits at
// checkpoints only, FULL at every commit (306 against 9 for twenty workflows,
// when this was written). Counting needs strace and the right to use it.
func TestTemporalDoesNotWaitForTheDiskAtEachCommit(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed: the effect of synchronous=normal is not looked at")
	}
	srv := startTemporal(t, devstack.TemporalConfig{Dir: t.TempDir()})
	c := dial(t, srv)
	const starts = 20
	waits := countSyncs(t, strace, srv.PID(), func() {
		for i := range starts {
			id := "w" + strconv.Itoa(i)
			_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "nobody"}, "none")
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	if waits >= starts {
		t.Errorf("%d waits for the disk during %d commits at least", waits, starts)
	}
}

// countSyncs runs work while strace counts the process's disk waits.
func countSyncs(t *testing.T, strace string, pid int, work func()) int {
	t.Helper()
	out := filepath.Join(t.TempDir(), "calls")
	tracer := exec.CommandContext(t.Context(), strace, "-f", "-o", out,
		"-e", "trace=fsync,fdatasync", "-p", strconv.Itoa(pid))
	stderr, err := tracer.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tracer.Start(); err != nil {
		t.Fatal(err)
	}
	first, _ := bufio.NewReader(stderr).ReadString('\n')
	if !strings.Contains(first, "attached") {
		_ = tracer.Wait()
		t.Skipf("strace may not be used here: %s", first)
	}
	work()
	// Interrupted, strace lets the process go on without it.
	_ = tracer.Process.Signal(syscall.SIGINT)
	_ = tracer.Wait()
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return len(regexp.MustCompile(`(?m)^\d+ +(fsync|fdatasync)\(`).FindAll(raw, -1))
}
