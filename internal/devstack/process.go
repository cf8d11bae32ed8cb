package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// pollEvery is the pause between two looks at something that cannot call back
// (a port that does not answer yet). Short against a start of about a second.
const pollEvery = 20 * time.Millisecond

// process is a running child. done is closed once it has ended and been
// reaped; err is what it ended with, to be read after done only.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// command describes a child to start. Its output goes to a file rather than
// through a pipe, so that a child never waits for a reader.
type command struct {
	path    string
	args    []string
	dir     string
	logFile string   // truncated at every start; KeepLog is the caller's
	env     []string // name=value, besides what this process has
}

// start runs the command. The child gets its own process group and, where the
// system has it, a signal at its parent's death.
//
// That signal follows the *thread* that forked, and Go may end threads; the
// thread is therefore locked for as long as the child lives.
func (c command) start() (*process, error) {
	out, err := os.OpenFile(c.logFile, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	// Bound to Stop and Kill, not to a context: the child outlives the call
	// that started it.
	cmd := exec.Command(c.path, c.args...) //nolint:noctx // see above
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, out, out
	cmd.Env = append(os.Environ(), c.env...)
	cmd.SysProcAttr = childAttributes()
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		_ = out.Close()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// KeepLog moves the log of the run before to `<path>.1`, one generation: what a
// run that was killed has left must outlast the next start. No log is no error.
func KeepLog(path string) error {
	if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("keep the last log: %w", err)
	}
	return nil
}

// exited reports whether the child has ended.
func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) signal(s os.Signal) error {
	if p.exited() {
		return os.ErrProcessDone
	}
	return p.cmd.Process.Signal(s)
}

// stop asks the child to end and waits for it. When the context ends first the
// child is killed, and the error, which begins with the name, says so.
func (p *process) stop(ctx context.Context, name string) error {
	_ = p.signal(syscall.SIGTERM)
	// A child that was paused with SIGSTOP must run to see the request.
	_ = p.signal(syscall.SIGCONT)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("%s did not stop in time and was killed: %w", name, ctx.Err())
	}
}

// kill ends the child as a crash would, and waits until it is gone.
func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL)
	<-p.done
}

// watch calls ready until it succeeds. It gives up when the child ends (with
// ErrExited) or the context does (with ErrNotReady and the last answer).
func (p *process) watch(ctx context.Context, ready func(context.Context) error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil && !p.exited() {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%w (%v)", ErrExited, p.err)
		case <-ctx.Done():
			return fmt.Errorf("%w: %v", ErrNotReady, err)
		case <-tick.C:
		}
	}
}

// runInGroup runs a command that starts others (an installation's script) and
// returns what they said. The end of its context ends all of them.
func runInGroup(cmd *exec.Cmd) ([]byte, error) {
	runtime.LockOSThread() // see start
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = childAttributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd.CombinedOutput()
}
