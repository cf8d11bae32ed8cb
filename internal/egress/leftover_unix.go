//go:build unix

package egress

import (
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
		case err == syscall.EINTR: //nolint:errorlint // a plain number, never wrapped
			continue
		case err != nil || n < 0:
			return 0, nil
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}
