package config

import (
	"strings"
	"testing"
	"time"
)

func TestLease(t *testing.T) {
	for _, test := range []struct {
		lease, timeout, allowance string
		want                      time.Duration
		raised                    bool
	}{
		{"30s", "15s", "10s", 30 * time.Second, false},    // the defaults fit exactly
		{"29s", "15s", "10s", 30 * time.Second, true},     // one short
		{"1s", "1s", "100ms", 7 * time.Second, true},      // the smallest, rounded up
		{"30s", "5m", "10s", 315 * time.Second, true},     // a long timeout
		{"30s", "15500ms", "10s", 31 * time.Second, true}, // rows count whole seconds
		{"45500ms", "15s", "10s", 46 * time.Second, false},
		{"1h", "5m", "5m", time.Hour, false},
	} {
		t.Run(test.lease+" "+test.timeout+" "+test.allowance, func(t *testing.T) {
			c := mustLoad(t, env{
				"WAYBILL_HERALD_CLAIM_LEASE":      test.lease,
				"WAYBILL_HERALD_DELIVERY_TIMEOUT": test.timeout,
				"WAYBILL_HERALD_WRITE_ALLOWANCE":  test.allowance,
			})
			got, warning := c.Lease()
			if got != test.want || (warning != "") != test.raised {
				t.Fatalf("Lease() = %s, %q", got, warning)
			}
			shown := entry(t, c, "WAYBILL_HERALD_CLAIM_LEASE")
			if shown.Value != compact(test.want) || (shown.Source == "raised") != test.raised {
				t.Errorf("entry = %+v", shown)
			}
			if test.raised && !strings.Contains(warning, "raised to "+compact(test.want)) {
				t.Errorf("the warning does not state the effective lease: %q", warning)
			}
		})
	}
}

// TestLeaseAlwaysCovers is the property behind the arithmetic: whatever is
// configured, wait + exchange + write fit.
func TestLeaseAlwaysCovers(t *testing.T) {
	for timeout := time.Second; timeout <= 5*time.Minute; timeout += 7301 * time.Millisecond {
		for lease := time.Second; lease <= time.Hour; lease += 97003 * time.Millisecond {
			c := Config{Herald: Herald{ClaimLease: lease, DeliveryTimeout: timeout, WriteAllowance: 333 * time.Millisecond}}
			got, _ := c.Lease()
			if got < ScheduleToStart+timeout+c.Herald.WriteAllowance || got < lease || got%time.Second != 0 {
				t.Fatalf("lease %s, timeout %s: effective %s", lease, timeout, got)
			}
		}
	}
}

func TestWarnings(t *testing.T) {
	const long = "0123456789abcdef"
	for _, test := range []struct {
		name string
		env  env
		want []string // words of each warning, in order
	}{
		{"defaults", nil, nil},
		{"raised lease", env{"WAYBILL_HERALD_CLAIM_LEASE": "5s"}, []string{"raised to 30s"}},
		{"open to the network", env{"WAYBILL_LISTEN": ":8160"}, []string{"WAYBILL_TOKEN: not set"}},
		{"open on an address", env{"WAYBILL_LISTEN": "10.0.0.1:8160"}, []string{"WAYBILL_TOKEN: not set"}},
		{"open by name", env{"WAYBILL_LISTEN": "waybill:8160"}, []string{"WAYBILL_TOKEN: not set"}},
		{"protected", env{"WAYBILL_LISTEN": ":8160", "WAYBILL_TOKEN": long}, nil},
		{"short token", env{"WAYBILL_TOKEN": long[1:]}, []string{"shorter than 16"}},
		{"IPv6 loopback", env{"WAYBILL_LISTEN": "[::1]:8160"}, nil},
		{"mapped loopback", env{"WAYBILL_LISTEN": "[::ffff:127.0.0.1]:8160"}, nil},
		{"localhost", env{"WAYBILL_LISTEN": "localhost:8160"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := mustLoad(t, test.env).Warnings()
			if len(got) != len(test.want) {
				t.Fatalf("warnings = %q", got)
			}
			for i, words := range test.want {
				if !strings.Contains(got[i], words) {
					t.Errorf("warning %q, want %q in it", got[i], words)
				}
			}
		})
	}
}

func TestLoopbackOfNonsense(t *testing.T) {
	if loopback("nonsense") {
		t.Error("nonsense counts as loopback")
	}
}

func TestCompactReadsBack(t *testing.T) {
	for _, d := range []time.Duration{0, time.Millisecond, 1500 * time.Millisecond, 15 * time.Second, time.Minute,
		90 * time.Second, 5 * time.Minute, 6 * time.Minute, time.Hour, 36 * time.Hour, 90 * time.Minute} {
		back, err := time.ParseDuration(compact(d))
		if err != nil || back != d {
			t.Errorf("compact(%s) = %q, read back as %s, %v", d, compact(d), back, err)
		}
	}
}
