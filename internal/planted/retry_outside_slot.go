//go:build planted_retry_outside_slot

package planted

const bug = RetryOutsideSlot
