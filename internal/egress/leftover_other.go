//go:build !unix

package egress

// take has no portable way to ask: what was not read in time stays unread.
func take(uintptr, []byte) (int, error) { return 0, nil }
