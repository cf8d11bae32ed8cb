//go:build !linux

package scenario

import "syscall"

// childAttributes: a process group of its own. Outside Linux a killed test
// binary leaves its children running.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
