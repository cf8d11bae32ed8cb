package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
)

// Reaches says whether a name or an address of a host leads to addresses that may
// be called, without a connection to any of them; nil if so.
func (c *Client) Reaches(ctx context.Context, hostname string) *Fault {
	_, fault := c.addresses(ctx, hostname)
	return fault
}

// addresses returns the addresses to dial, in order, every one of them allowed.
func (c *Client) addresses(ctx context.Context, hostname string) ([]netip.Addr, *Fault) {
	addrs, fault := literal(hostname)
	if fault == nil && addrs == nil {
		addrs, fault = c.lookup(ctx, hostname)
	}
	if fault != nil {
		return nil, fault
	}
	for _, addr := range addrs {
		// One bad address spoils the answer: whoever mixes them may be
		// counting on being asked again.
		if !c.cfg.Policy.Allows(addr) {
			return nil, &Fault{Denied: true}
		}
	}
	return addrs, nil
}

// literal returns the address that hostname spells, or nothing when it is a
// name. Only the plain spellings count: what looks like an address and is not
// one of them is denied, because some resolver somewhere reads it as one.
func literal(hostname string) ([]netip.Addr, *Fault) {
	inner, bracketed := strings.CutPrefix(hostname, "[")
	if bracketed {
		inner, bracketed = strings.CutSuffix(inner, "]")
	}
	addr, err := netip.ParseAddr(inner)
	switch {
	case err == nil && addr.Zone() == "" && addr.Is4() == !bracketed:
		return []netip.Addr{addr.Unmap()}, nil
	case strings.ContainsAny(hostname, ":[]%"), endsInNumber(hostname):
		return nil, &Fault{Denied: true}
	case !plainName(hostname):
		return nil, &Fault{Code: CodeMalformed}
	}
	return nil, nil
}

// endsInNumber is the WHATWG URL standard's "ends in a number" checker: such
// hosts (2130706433, 0x7f.1, 127.1) are addresses to inet_aton.
func endsInNumber(hostname string) bool {
	hostname = strings.TrimSuffix(hostname, ".")
	last := hostname[strings.LastIndexByte(hostname, '.')+1:]
	digits := "0123456789"
	if rest, hex := strings.CutPrefix(strings.ToLower(last), "0x"); hex {
		last, digits = "0"+rest, "0123456789abcdefABCDEF"
	}
	return last != "" && strings.Trim(last, digits) == ""
}

// plainName says whether hostname consists of bytes that occur in host names,
// the underscore included: it does no harm in a lookup.
func plainName(hostname string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
	// 254: RFC 1035 section 3.1's 255 octets in the presentation form, with
	// the final dot.
	return hostname != "" && len(hostname) <= 254 && strings.Trim(hostname, letters) == "" &&
		!strings.HasPrefix(hostname, ".")
}

// lookup asks the resolver, once. Where a name has any A address only those
// are used, as with PHP's gethostbynamel: the same hook must not be judged by
// another address than Phorge judged it by.
func (c *Client) lookup(ctx context.Context, name string) ([]netip.Addr, *Fault) {
	answer, err := c.cfg.Resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, lookupFault(ctx, err)
	}
	var v4, v6 []netip.Addr
	for _, addr := range answer {
		// Resolvers hand out A addresses in their IPv4-mapped form, too.
		if addr = addr.Unmap(); addr.Is4() {
			v4 = append(v4, addr)
		} else {
			v6 = append(v6, addr)
		}
	}
	if v4 != nil {
		return v4, nil
	}
	if v6 == nil {
		return nil, &Fault{Code: CodeResolve, NoSuchHost: true}
	}
	return v6, nil
}

// lookupFault tells a name that does not exist from one that nobody could be
// asked about. Only the former is final.
func lookupFault(ctx context.Context, err error) *Fault {
	if fault := ended(ctx, nil); fault != nil {
		return fault
	}
	var dns *net.DNSError
	final := errors.As(err, &dns) && dns.IsNotFound && !dns.IsTemporary && !dns.IsTimeout
	return &Fault{Code: CodeResolve, NoSuchHost: final}
}
