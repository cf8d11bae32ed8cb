package egress

import (
	"net/netip"
	"slices"
)

// Policy says which addresses may be dialled. An address is denied when a deny
// network holds it, unless an allow network does as well: allow wins. An IPv6
// address that carries an IPv4 address is judged by that one too, whatever the
// networks say about the outer address.
//
// The zero Policy and a nil one deny everything.
type Policy struct {
	deny, allow []netip.Prefix
	built       bool
}

// NewPolicy returns the policy for these networks. Networks inside
// ::ffff:0:0/96 are taken as the IPv4 networks they stand for, invalid ones in
// allow open nothing, and an invalid one in deny closes everything: a list
// that was not understood must not count as an empty one.
func NewPolicy(deny, allow []netip.Prefix) *Policy {
	invalid := slices.ContainsFunc(deny, func(p netip.Prefix) bool { return !p.IsValid() })
	return &Policy{deny: unmapped(deny), allow: unmapped(allow), built: !invalid}
}

// Allows says whether addr may be dialled. An address with a zone never may:
// it names an interface of this machine.
func (p *Policy) Allows(addr netip.Addr) bool {
	if p == nil || !p.built || !addr.IsValid() || addr.Zone() != "" {
		return false
	}
	addr = addr.Unmap()
	if !p.permits(addr) {
		return false
	}
	for _, inner := range embedded(addr) {
		if !p.permits(inner) {
			return false
		}
	}
	return true
}

// permits judges one address as it stands.
func (p *Policy) permits(addr netip.Addr) bool {
	holds := func(n netip.Prefix) bool { return n.Contains(addr) }
	return !slices.ContainsFunc(p.deny, holds) || slices.ContainsFunc(p.allow, holds)
}

// embedded returns the IPv4 addresses that addr carries by the forms it has.
func embedded(addr netip.Addr) []netip.Addr {
	if !addr.Is6() || addr == netip.IPv6Unspecified() || addr == netip.IPv6Loopback() {
		// :: and ::1 lie in ::/96 without being IPv4-compatible addresses
		// (RFC 4291 section 2.5.5.1); they have entries of their own.
		return nil
	}
	var found []netip.Addr
	raw := addr.As16()
	for _, form := range embeddings {
		if !form.matches(addr, raw) {
			continue
		}
		var v4 [4]byte
		for i, at := range form.octets {
			v4[i] = raw[at] ^ form.mask
		}
		found = append(found, netip.AddrFrom4(v4))
	}
	return found
}

// matches says whether addr has this form.
func (e embedding) matches(addr netip.Addr, raw [16]byte) bool {
	if e.isatap {
		// The universal/local bit may be set or not (RFC 5214 section 6.1).
		return raw[8]&^0x02 == 0 && raw[9] == 0 && raw[10] == 0x5e && raw[11] == 0xfe
	}
	return e.prefix.Contains(addr)
}

// unmapped replaces networks inside ::ffff:0:0/96 by their IPv4 networks.
func unmapped(networks []netip.Prefix) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(networks))
	for _, n := range networks {
		if n.Addr().Is4In6() && n.Bits() >= 96 {
			n = netip.PrefixFrom(n.Addr().Unmap(), n.Bits()-96)
		}
		if n.IsValid() {
			out = append(out, n.Masked())
		}
	}
	return out
}
