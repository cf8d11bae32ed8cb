package herald_test

import (
	"testing"
	"time"

	"waybill/internal/herald"
)

// The breaker is open while the failure lies in the window, its first second
// included, by the clock of the one that has both.
func TestTheBreakerOpensForTheRestOfTheWindow(t *testing.T) {
	const now = int64(1_800_000_000)
	for name, tt := range map[string]struct {
		failure int64
		window  time.Duration
		want    time.Duration
	}{
		"too few failures":          {0, 300 * time.Second, 0},
		"too few and a long window": {0, time.Duration(now+9) * time.Second, 0},
		"of this second":            {now, 300 * time.Second, 301 * time.Second},
		"within the window":         {now - 100, 300 * time.Second, 201 * time.Second},
		"the window's first second": {now - 300, 300 * time.Second, time.Second},
		"a second before it":        {now - 301, 300 * time.Second, 0},
		"long before it":            {1, 300 * time.Second, 0},
		"of the future":             {now + 1000, 300 * time.Second, 1301 * time.Second},
		"no window":                 {now, 0, time.Second},
	} {
		s := herald.Snapshot{ThresholdFailure: tt.failure, Now: now}
		if got := s.BreakerWait(tt.window); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
