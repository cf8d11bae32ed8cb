//go:build !(planted_no_fence || planted_no_lease_check || planted_second_select || planted_report_first || planted_retry_outside_slot || planted_early_release || planted_replay)

package planted

const bug Bug = ""
