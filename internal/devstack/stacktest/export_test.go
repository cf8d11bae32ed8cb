package stacktest

// Sweep is sweep, for its test.
func Sweep(root string) { sweep(root) }
