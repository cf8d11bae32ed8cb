package scenario

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
)

// established is the state of a TCP connection that neither end has closed
// (TCP_ESTABLISHED in the kernel's tcp_states.h).
const established = 1

// hungUp asks the kernel whether the other end of a connection has closed it.
// On loopback a close is there before the closer can do anything else, so the
// answer is exact, whatever has been read meanwhile.
func hungUp(conn net.Conn) bool {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return true
	}
	state := byte(0)
	err = raw.Control(func(fd uintptr) {
		// The first byte of struct tcp_info is the state; this reads four.
		info, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
		if err == nil {
			state = binary.NativeEndian.AppendUint32(nil, uint32(info))[0]
		}
	})
	return err != nil || state != established
}

// pidOf is which of the processes has the other end of a connection, 0 for none
// of them.
func pidOf(conn net.Conn, among []int) int {
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	here, also := conn.LocalAddr().(*net.TCPAddr)
	if !ok || !also {
		return 0
	}
	link := "socket:[" + inodeOf(remote.Port, here.Port) + "]"
	for _, pid := range among {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		files, _ := os.ReadDir(dir)
		for _, file := range files {
			if to, err := os.Readlink(dir + "/" + file.Name()); err == nil && to == link {
				return pid
			}
		}
	}
	return 0
}

// inodeOf is the inode of the loopback socket between two ports, seen from the
// first: one local port may serve connections to several servers. The table's
// columns: number, local address, remote address, state, queues, timer,
// retransmissions, uid, timeout, inode.
func inodeOf(from, to int) string {
	table, err := os.Open("/proc/net/tcp")
	if err != nil {
		return ""
	}
	defer func() { _ = table.Close() }()
	local, remote := fmt.Sprintf(":%04X", from), fmt.Sprintf(":%04X", to)
	for lines := bufio.NewScanner(table); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[1], local) && strings.HasSuffix(fields[2], remote) {
			return fields[9]
		}
	}
	return ""
}
