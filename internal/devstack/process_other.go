//go:build !linux

package devstack

import "syscall"

// childAttributes: a process group of its own. There is no parent-death signal
// outside Linux; a child that outlives a killed parent is reported as ErrInUse
// by the next start.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
