//go:build planted_no_fence

package planted

const bug = NoFence
