//go:build planted_second_select

package planted

const bug = SecondSelect
