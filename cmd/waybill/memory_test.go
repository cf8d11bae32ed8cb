package main

import "testing"

func TestTheRuntimesOwnVariableDecidesAboutMemory(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want int
	}{
		{"nothing", nil, gcPercent},
		{"a percentage", map[string]string{"GOGC": "200"}, 0},
		{"a limit, which decides about something else", map[string]string{"GOMEMLIMIT": "1GiB"}, gcPercent},
		{"both", map[string]string{"GOMEMLIMIT": "1GiB", "GOGC": "200"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := 0
			saveMemory(func(name string) string { return tt.env[name] }, func(percent int) int { got = percent; return 100 })
			if got != tt.want {
				t.Errorf("set to %d, want %d", got, tt.want)
			}
		})
	}
}
