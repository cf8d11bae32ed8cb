//go:build planted_no_lease_check

package planted

const bug = NoLeaseCheck
