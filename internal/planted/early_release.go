//go:build planted_early_release

package planted

const bug = EarlyRelease
