//go:build planted_replay

package planted

const bug = Replay
