package scenario

import "syscall"

// childAttributes: a process group of its own, so that a terminal's Ctrl-C
// reaches the tests first, and death with the test binary.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
