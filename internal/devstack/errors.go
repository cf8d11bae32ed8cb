package devstack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// What can be wrong with a machine. Every error of StartMariaDB and
// StartTemporal that has one of these causes wraps it; the text around it says
// what to do.
var (
	// ErrMissing: the program is not installed.
	ErrMissing = errors.New("program not found")
	// ErrPortInUse: a port that was asked for is taken.
	ErrPortInUse = errors.New("port in use")
	// ErrInUse: another copy is running on the same directory.
	ErrInUse = errors.New("directory in use")
	// ErrNotYours: the directory belongs to another user.
	ErrNotYours = errors.New("directory of another user")
	// ErrDiskFull: the file system of the directory has no space left.
	ErrDiskFull = errors.New("disk full")
	// ErrExited: the program ended before it was ready.
	ErrExited = errors.New("ended while starting")
	// ErrNotReady: the program runs, but did not become ready in time.
	ErrNotReady = errors.New("not ready in time")
)

// tailBytes is how much of a log file an error may look at and quote: enough
// for the last twenty or so lines of either server.
const tailBytes = 4096

// quotedLines is how many log lines an error shows.
const quotedLines = 12

// startError explains a failed start by what the program wrote.
func startError(program string, cause error, logFile string) error {
	tail := fileTail(logFile)
	switch {
	case strings.Contains(tail, "No space left on device") || strings.Contains(tail, "Errcode: 28") ||
		strings.Contains(tail, "failed with error 28"):
		cause = ErrDiskFull
	case strings.Contains(tail, "ddress already in use"):
		cause = ErrPortInUse
	case strings.Contains(tail, "Unable to lock ./ibdata1"):
		// Our own lock file is held by the parent only. A server that outlived
		// a killed parent (no parent-death signal outside Linux) shows here.
		cause = ErrInUse
	}
	return fmt.Errorf("%s: %w; last lines of %s:\n%s", program, cause, logFile, lastLines(tail, quotedLines))
}

// fileTail returns the end of a file, or why it cannot be read.
func fileTail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	defer func() { _ = f.Close() }()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-tailBytes), io.SeekStart)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(b)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lines = lines[max(0, len(lines)-n):]
	return "  " + strings.Join(lines, "\n  ")
}
