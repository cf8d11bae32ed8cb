package devstack_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
)

// parentVariable makes the test binary play a parent that is killed.
const parentVariable = "DEVSTACK_TEST_PARENT_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentVariable); dir != "" {
		playParent(dir)
	}
	stacktest.Main(m)
}

// playParent starts a server, says so and waits to be killed.
func playParent(dir string) {
	if _, err := devstack.StartMariaDB(context.Background(), devstack.MariaDBConfig{Dir: dir, Ephemeral: true}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	select {}
}

func TestServersDieWithTheirParentAndTheDirectoryIsFree(t *testing.T) {
	stacktest.NeedsServers(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	parent := exec.CommandContext(t.Context(), self)
	parent.Env = append(os.Environ(), parentVariable+"="+dir)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		t.Fatalf("the parent said %q", line)
	}
	child := serverPID(t, dir)
	if group, err := syscall.Getpgid(child); err != nil || group != child {
		t.Errorf("the server is in process group %d (%v), want one of its own (%d)", group, err, child)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	waitGone(t, child)
	startMariaDB(t, devstack.MariaDBConfig{Dir: dir, Ephemeral: true})
}

func serverPID(t *testing.T, dir string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "mariadb.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// waitGone waits until a process has ended; a zombie nobody reaps counts.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, os.ErrNotExist) || strings.Contains(string(stat), ") Z ") {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("process %d outlived its parent", pid)
		case <-tick.C:
		}
	}
}
