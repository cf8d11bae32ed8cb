//go:build unix

package egress

import (
	"errors"
	"io"
	"syscall"
)

// take reads from a descriptor that does not block, as all of the runtime's
// sockets are. A connection that is broken holds nothing: its attempt keeps the
// end that it had.
func take(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), p)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil || n < 0:
			return 0, nil //nolint:nilerr // nothing there, or nothing to be had
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}
