package devstack

import "testing"

// SetProgramPaths replaces the places searched besides PATH for one test.
func SetProgramPaths(t *testing.T, paths []string) {
	t.Helper()
	old := mariadbPaths
	mariadbPaths = paths
	t.Cleanup(func() { mariadbPaths = old })
}

// PID is the process id of a running server.
func (t *Temporal) PID() int { return t.proc.cmd.Process.Pid }
