// Package planted has the faults that the fault campaign must be able to find:
// each breaks one rule of the Herald lane, in a build of its own made with the
// tag planted_<name>. In every other build no bug is planted, Is is false for
// all of them when the compiler runs, and their code is not there.
//
// Only tests build with these tags: test/faults finds each bug by chance, test
// makes the one fault that it takes.
package planted

// Bug names a planted fault.
type Bug string

// The bugs, by their tags.
const (
	// NoFence writes a result whatever the row has become.
	NoFence Bug = "no_fence"
	// NoLeaseCheck keeps an unused claim beyond its lease and dials without a look
	// at what is left of that.
	NoLeaseCheck Bug = "no_lease_check"
	// SecondSelect asks for the claim's version in a statement of its own.
	SecondSelect Bug = "second_select"
	// ReportFirst reports a result to Temporal and has it written later.
	ReportFirst Bug = "report_first"
	// RetryOutsideSlot lets retries call while another attempt does.
	RetryOutsideSlot Bug = "retry_outside_slot"
	// EarlyRelease gives a hook's lock back while its last call is under way.
	EarlyRelease Bug = "early_release"
	// Replay sends a call again whose connection broke without an answer, as
	// transports do that take a request for idempotent.
	Replay Bug = "replay"
)

// All lists them.
func All() []Bug {
	return []Bug{NoFence, NoLeaseCheck, SecondSelect, ReportFirst, RetryOutsideSlot, EarlyRelease, Replay}
}

// Tag is the build tag that plants a bug.
func (b Bug) Tag() string { return "planted_" + string(b) }

// Is says whether this build has the bug.
func Is(b Bug) bool { return b == bug }
