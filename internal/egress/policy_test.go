package egress_test

import (
	"net/netip"
	"testing"

	"waybill/internal/egress"
)

func TestPolicy(t *testing.T) {
	byDefault := egress.DefaultDeny()
	tests := []struct {
		name        string
		deny, allow []netip.Prefix
		addr        string
		allowed     bool
	}{
		{"public", byDefault, nil, "93.184.216.34", true},
		{"public IPv6", byDefault, nil, "2606:2800:220:1::1", true},
		{"private", byDefault, nil, "10.1.2.3", false},
		{"allow wins", byDefault, prefixes("10.1.0.0/16"), "10.1.2.3", true},
		{"beside allow", byDefault, prefixes("10.1.0.0/16"), "10.2.0.1", false},
		{"allow opens the mapped form", byDefault, prefixes("10.1.0.0/16"), "::ffff:10.1.2.3", true},
		{"allow written mapped", byDefault, prefixes("::ffff:10.1.0.0/112"), "10.1.2.3", true},
		{"deny written mapped", prefixes("::ffff:93.184.0.0/112"), nil, "93.184.216.34", false},
		{"deny with host bits", prefixes("93.184.216.34/8"), nil, "93.1.1.1", false},
		{"allow of ::1", byDefault, prefixes("::1/128"), "::1", true},
		{"allow of IPv4 loopback is not ::1", byDefault, prefixes("127.0.0.0/8"), "::1", false},
		{"nothing denied", nil, nil, "127.0.0.1", true},
		{"nothing denied, IPv6", nil, nil, "fd00::1", true},

		// The inner address counts, whatever the list says about the outer one.
		{"compatible", prefixes("10.0.0.0/8"), nil, "::a00:1", false},
		{"translated", prefixes("10.0.0.0/8"), nil, "::ffff:0:a00:1", false},
		{"NAT64", prefixes("10.0.0.0/8"), nil, "64:ff9b::a00:1", false},
		{"local NAT64 as /96", prefixes("10.0.0.0/8"), nil, "64:ff9b:1::a00:1", false},
		{"local NAT64 as /48", prefixes("10.0.0.0/8"), nil, "64:ff9b:1:a00:0:100:808:808", false},
		{"6to4", prefixes("10.0.0.0/8"), nil, "2002:a00:1::1", false},
		{"Teredo", prefixes("10.0.0.0/8"), nil, "2001:0:4136:e378:8000:63bf:f5ff:fffe", false},
		{"ISATAP", prefixes("10.0.0.0/8"), nil, "2606:2800::5efe:a00:1", false},
		{"ISATAP with the universal bit", prefixes("10.0.0.0/8"), nil, "2606:2800::200:5efe:a00:1", false},
		{"public 6to4", prefixes("10.0.0.0/8"), nil, "2002:5db8:d822::1", true},
		{"public Teredo", prefixes("10.0.0.0/8"), nil, "2001:0:4136:e378:8000:63bf:a247:27dd", true},

		// Opening the outer network does not open what is inside.
		{"allowed NAT64 of loopback", byDefault, prefixes("64:ff9b::/96"), "64:ff9b::7f00:1", false},
		{"allowed 6to4 of private", byDefault, prefixes("2002::/16"), "2002:a00:1::1", false},
		{"allowed 6to4 of public", byDefault, prefixes("2002::/16"), "2002:5db8:d822::1", true},
		{"everything allowed but v4", byDefault, prefixes("::/0"), "64:ff9b::a9fe:a9fe", false},
		// Opening the inner network does not open a denied outer form.
		{"6to4 of an opened network", byDefault, prefixes("10.0.0.0/8"), "2002:a00:1::1", false},
		{"NAT64 of an opened network", byDefault, prefixes("10.0.0.0/8"), "64:ff9b::a00:1", true},

		{"zone", nil, nil, "fe80::1%eth0", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			policy := egress.NewPolicy(tt.deny, tt.allow)
			if got := policy.Allows(netip.MustParseAddr(tt.addr)); got != tt.allowed {
				t.Errorf("%s: allowed %v, want %v", tt.addr, got, tt.allowed)
			}
		})
	}
}

// TestDefaultDenyEdges asks for the first and last address of every network
// and for their neighbours outside.
func TestDefaultDenyEdges(t *testing.T) {
	policy := egress.NewPolicy(egress.DefaultDeny(), nil)
	for _, network := range egress.DefaultDeny() {
		if network != network.Masked() {
			t.Errorf("%v has host bits", network)
		}
		if first := network.Addr(); policy.Allows(first) {
			t.Errorf("%v is allowed", first)
		}
		if last := lastOf(network); policy.Allows(last) || network.Contains(last.Next()) {
			t.Errorf("%v is allowed or not the last", last)
		}
	}
	for _, neighbour := range []string{"1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
		"126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
		"191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0",
		"198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255",
		"2001:200::", "2001:db7:ffff::1", "2001:db9::", "2001:ffff::", "2003::", "3ffe:ffff::1", "3fff:1000::", "2606:4700::1"} {
		if !policy.Allows(netip.MustParseAddr(neighbour)) {
			t.Errorf("%s is denied", neighbour)
		}
	}
}

// lastOf is the last address of a network.
func lastOf(network netip.Prefix) netip.Addr {
	raw := network.Addr().AsSlice()
	for bit := network.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(raw)
	return last
}

// TestUnusablePolicies deny everything.
func TestUnusablePolicies(t *testing.T) {
	public := netip.MustParseAddr("93.184.216.34")
	var none *egress.Policy
	for name, policy := range map[string]*egress.Policy{
		"nil": none, "zero": {}, "invalid deny": egress.NewPolicy([]netip.Prefix{{}}, nil),
	} {
		if policy.Allows(public) {
			t.Errorf("%s policy allows", name)
		}
	}
	open := egress.NewPolicy(nil, []netip.Prefix{{}})
	if !open.Allows(public) || open.Allows(netip.Addr{}) {
		t.Error("invalid allow network, or the zero address")
	}
	closed := egress.NewPolicy(egress.DefaultDeny(), []netip.Prefix{{}})
	if closed.Allows(netip.MustParseAddr("10.0.0.1")) {
		t.Error("an invalid allow network opens something")
	}
}

// FuzzPolicy holds the policy against its rule: no IPv6 address that carries a
// denied IPv4 address at the usual place is ever allowed.
func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "8.8.8.8", "0.0.0.0", "255.255.255.255"} {
		v4 := netip.MustParseAddr(seed).As4()
		f.Add(v4[0], v4[1], v4[2], v4[3])
	}
	policy := egress.NewPolicy(egress.DefaultDeny(), prefixes("::/0"))
	f.Fuzz(func(t *testing.T, a, b, c, d byte) {
		v4 := netip.AddrFrom4([4]byte{a, b, c, d})
		for _, form := range []netip.Addr{
			netip.AddrFrom16([16]byte{10: 0xff, 11: 0xff, 12: a, 13: b, 14: c, 15: d}),
			netip.AddrFrom16([16]byte{1: 0x64, 2: 0xff, 3: 0x9b, 12: a, 13: b, 14: c, 15: d}),
			netip.AddrFrom16([16]byte{0: 0x20, 1: 0x02, 2: a, 3: b, 4: c, 5: d, 15: 1}),
			netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 12: ^a, 13: ^b, 14: ^c, 15: ^d}),
		} {
			if policy.Allows(form) != policy.Allows(v4) {
				t.Errorf("%v and %v are judged differently", form, v4)
			}
		}
	})
}
