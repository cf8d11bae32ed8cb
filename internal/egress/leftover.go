package egress

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// punctual is a connection on which an answer counts that came in time and was
// not read: the process stood still meanwhile (stopped, frozen, moved), and of
// the two things it finds when it runs again, the end of the time and the
// bytes, the runtime reports the first. Once the time is over it takes what the
// kernel holds already and never waits for more, so an answer that is not
// complete stays a timeout. The limits on heads and bodies end it for a
// receiver that never stops sending.
type punctual struct{ net.Conn }

// Read implements net.Conn.
func (c punctual) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || len(p) == 0 {
		return n, err
	}
	late, readErr := leftover(c.Conn, p)
	if late == 0 && readErr == nil {
		return 0, err
	}
	return late, readErr
}

// leftover reads what has arrived, without waiting; 0 and no error when there
// is nothing, io.EOF when the receiver has ended its side. The descriptor is
// asked directly: past its deadline a net.Conn gives nothing, and a later
// deadline would wait for what has not come in time.
func leftover(conn net.Conn, p []byte) (n int, err error) {
	socket, ok := conn.(syscall.Conn)
	if !ok || len(p) == 0 {
		return 0, nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, nil // closed: nothing is left
	}
	_ = raw.Control(func(fd uintptr) { n, err = take(fd, p) })
	return n, err
}
