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

// LockDir creates dir and takes the lock file `<name>.lock` in it, until the
// file is closed. The lock is the kernel's (flock), so that a killed process
// leaves none behind. Errors wrap ErrInUse, ErrNotYours or ErrDiskFull.
func LockDir(dir, name string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, notYours(diskError(err), dir)
	}
	path := filepath.Join(dir, name+".lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, notYours(diskError(err), dir)
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

// lockDir locks a server's directory. Root could use somebody else's, but what
// it wrote there would stop the owner's next start.
func lockDir(dir, name string) (*os.File, error) {
	var stat syscall.Stat_t
	if err := syscall.Stat(dir, &stat); err == nil && int(stat.Uid) != os.Geteuid() {
		return nil, notYours(os.ErrPermission, dir)
	}
	return LockDir(dir, name)
}

// notYours marks a refusal of the file system, which usually means that the
// data were made by another user.
func notYours(err error, dir string) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w: %s; run as the user who made it, or work in a copy of your own (%v)", ErrNotYours, dir, err)
	}
	return err
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
