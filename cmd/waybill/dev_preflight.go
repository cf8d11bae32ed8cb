package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"waybill/internal/devstack"
)

// preflight looks for whatever would stop the demo half-way, before anything
// is started that would have to be stopped again.
func (s *demoStack) preflight(ctx context.Context) (err error) {
	within := time.Duration(0)
	if _, err := os.Lstat(controlPath()); err == nil {
		within = lastGasp
	}
	err = patiently(ctx, within, func() error {
		if s.lock == nil {
			if s.lock, err = lockDemo(); err != nil {
				return err
			}
		}
		return freePorts(ctx, s.options.ports)
	})
	if err != nil {
		return err
	}
	if err := devstack.CheckSpace(devDir, s.first()); err != nil {
		return err
	}
	s.bin, err = devstack.FindTemporal(s.getenv)
	return err
}

// lastGasp is how long the servers of a demo that was killed, and that left its
// socket behind for that reason, may still take to give their ports free. They
// are killed with it and need some ten milliseconds, on a busy machine more.
const lastGasp = 3 * time.Second

// patiently tries again for a while; the last error counts.
func patiently(ctx context.Context, within time.Duration, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := try()
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}

// first says whether there are no data yet.
func (s *demoStack) first() bool {
	_, err := os.Stat(filepath.Join(devDir, "mariadb", "mysql"))
	return errors.Is(err, os.ErrNotExist)
}

// devLock names the lock that a running demo holds on its folder.
const devLock = "dev"

func lockDemo() (*os.File, error) {
	lock, err := devstack.LockDir(devDir, devLock)
	if errors.Is(err, devstack.ErrInUse) {
		pid, _ := os.ReadFile(filepath.Join(devDir, devLock+".lock"))
		return nil, fmt.Errorf("a demo already runs in this folder (process %s).\n"+
			"Drive it with `waybill dev demo`, or end it with Ctrl-C in its terminal first", strings.TrimSpace(string(pid)))
	}
	return lock, err
}

// freePorts reports every port that cannot be listened on, with the way out.
func freePorts(ctx context.Context, ports []devPort) error {
	var taken []string
	example := devPort{}
	for _, p := range ports {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", p.port))
		if err == nil {
			_ = l.Close()
			continue
		}
		why := err.Error()
		if errors.Is(err, syscall.EADDRINUSE) {
			why = "in use"
		} else if errors.Is(err, syscall.EACCES) {
			why = "not allowed to you"
		}
		taken = append(taken, fmt.Sprintf("  %-5d %s: %s\n        choose another: %s=... or --%s ...", p.port, p.what, why, p.variable, p.flag))
		example = p
	}
	if len(taken) == 0 {
		return nil
	}
	return fmt.Errorf("nothing was started, because these ports cannot be had on 127.0.0.1:\n%s\n"+
		"Who has one: ss -ltnp 'sport = :%d'. Perhaps a demo runs in another folder.\n"+
		"For example: %s=%d make run", strings.Join(taken, "\n"), example.port, example.variable, otherPort(example.port))
}

// otherPort is a port for an example: ten thousand up, or down where that is
// the end of the range.
func otherPort(port int) int {
	if port+10000 > 65535 {
		return port - 10000
	}
	return port + 10000
}
