package devstack

import "syscall"

// childAttributes: a process group of its own, and SIGKILL when the parent
// dies. A harsher signal than needed, on purpose: both servers recover from a
// crash, and a polite one would leave them running into the next start.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
