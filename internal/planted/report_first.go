//go:build planted_report_first

package planted

const bug = ReportFirst
