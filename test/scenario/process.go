package scenario

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// stopWithin bounds an orderly stop as a test sees it: the longest exchange
// that tests configure, its write, the 5 s that locks are held, and patience.
const stopWithin = 90 * time.Second

// tailShown is how much of its log a process leaves in a failed test's output.
const tailShown = 25

// Process is a running or finished waybill. Methods may be called from any
// goroutine.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	name string

	// Out is its standard output, Log its standard error.
	Out, Log *Log
}

// Start runs a program. Its environment is what env says and nothing else but
// PATH and HOME, so that a developer's own settings decide no test. The
// process is killed with the test, whose failure shows the end of its log.
func Start(t testing.TB, path string, env map[string]string, args ...string) *Process {
	t.Helper()
	p := &Process{done: make(chan struct{}), name: args[0], Out: &Log{}, Log: &Log{}}
	p.cmd = exec.Command(path, args...) //nolint:noctx // ended by Stop, Kill or the test's cleanup
	p.cmd.Dir, p.cmd.Env = t.TempDir(), environment(env)
	p.cmd.Stdout, p.cmd.Stderr = p.Out, p.Log
	p.cmd.SysProcAttr = childAttributes()
	if err := p.launch(); err != nil {
		t.Fatalf("scenario: %v", err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the end of the log of %q:\n%s", args, p.Log.Tail(tailShown))
		}
	})
	return p
}

// launch starts the command on a thread of its own: the signal at the parent's
// death follows the thread that forked, and Go ends threads as it likes.
func (p *Process) launch() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // ProcessState keeps the outcome
			close(p.done)
		}
	}()
	return <-started
}

func environment(env map[string]string) []string {
	all := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	for name, value := range env {
		all = append(all, name+"="+value)
	}
	return all
}

// Exited reports whether it has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal; to a process that has ended it does nothing.
func (p *Process) Signal(s syscall.Signal) {
	if !p.Exited() {
		_ = p.cmd.Process.Signal(s)
	}
}

// Kill ends the process like a crash and waits until it is gone.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}

// Stop asks the process to end and returns its exit code.
func (p *Process) Stop(t testing.TB) int {
	t.Helper()
	p.Signal(syscall.SIGTERM)
	return p.Wait(t, stopWithin)
}

// Wait waits for the end and returns the exit code, -1 after a signal.
func (p *Process) Wait(t testing.TB, within time.Duration) int {
	t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		t.Fatalf("%s still runs after %v", p.name, within)
	}
	return p.cmd.ProcessState.ExitCode()
}
