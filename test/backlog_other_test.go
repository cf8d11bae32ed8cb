//go:build !linux

package acceptance

import "testing"

// fullBacklog needs Linux's way with full queues; elsewhere a silent server
// stands for it, which gives the same verdict at a later step.
func fullBacklog(t *testing.T) string {
	t.Helper()
	return misbehaving(t, silence)
}
