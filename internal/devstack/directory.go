package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lockDir creates dir and takes the lock file `<name>.lock` in it. The lock is
// the kernel's (flock), so that a killed process leaves none behind.
func lockDir(dir, name string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, diskError(err)
	}
	path := filepath.Join(dir, name+".lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, diskError(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path)
		_ = f.Close()
		return nil, fmt.Errorf("%w: another copy (process %s) runs %s in %s; stop it or use another directory",
			ErrInUse, strings.TrimSpace(string(holder)), name, dir)
	}
	// For people only: who to look for.
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return f, nil
}

// diskError marks a full disk as such.
func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: %v", ErrDiskFull, err)
	}
	return err
}

// loopback is the only address anything here listens on.
const loopback = "127.0.0.1"

// freePort returns a port that was free a moment ago. Whoever uses it must be
// ready to lose the race for it and ask again.
func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", loopback+":0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// checkPort reports why a port cannot be listened on, ErrPortInUse where that
// is the reason. what names the port's purpose in the text.
func checkPort(ctx context.Context, port int, what string) error {
	l, err := listen(ctx, net.JoinHostPort(loopback, strconv.Itoa(port)), what)
	if err != nil {
		return err
	}
	return l.Close()
}

// listen listens, with an error that says for what and tells a taken port from
// other reasons.
func listen(ctx context.Context, addr, what string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w: %s needs %s", ErrPortInUse, what, addr)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return l, nil
}
