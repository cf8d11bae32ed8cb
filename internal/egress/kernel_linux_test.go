package egress_test

import (
	"net"
	"syscall"
	"time"
	"unsafe"
)

// awaitAck returns when the peer's kernel has everything written to conn, so
// that a reset cannot overtake it.
func awaitAck(conn net.Conn) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return
	}
	for pending := int32(1); pending > 0; {
		_ = raw.Control(func(fd uintptr) {
			// SIOCOUTQ (linux/sockios.h) is TIOCOUTQ: unacknowledged bytes.
			_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&pending)))
			if errno != 0 {
				pending = 0
			}
		})
		time.Sleep(100 * time.Microsecond) // the kernel has nothing to wait on
	}
}

// awaitClose returns when the peer has closed or reset conn, without reading
// what it still sends.
func awaitClose(conn net.Conn) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return
	}
	gone := false
	for !gone {
		ctlErr := raw.Control(func(fd uintptr) {
			info := make([]byte, 256)
			size := uint32(len(info))
			_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO,
				uintptr(unsafe.Pointer(&info[0])), uintptr(unsafe.Pointer(&size)), 0)
			const established = 1 // TCP_ESTABLISHED; first byte of struct tcp_info
			gone = errno != 0 || info[0] != established
		})
		gone = gone || ctlErr != nil
		time.Sleep(100 * time.Microsecond)
	}
}
