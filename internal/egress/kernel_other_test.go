//go:build !linux

package egress_test

import (
	"io"
	"net"
	"time"
)

// awaitAck gives loopback time to carry what was written to conn: other
// systems have no common way to ask.
func awaitAck(net.Conn) { time.Sleep(50 * time.Millisecond) }

// awaitClose returns when the peer has closed or reset conn. Unlike on Linux
// it has to read to see that.
func awaitClose(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
