package herald

import (
	"net/netip"
	"strings"
)

// Limits of a name in the DNS (RFC 1035, 2.3.4), without the trailing dot.
const (
	maxName  = 253
	maxLabel = 63
)

// checkHost is PhutilURI's pattern ^[a-zA-Z0-9]+[a-zA-Z0-9.-]*$ plus what
// gethostbyname could not have resolved anyway. IPv6 literals fail the pattern.
func checkHost(host string) error {
	if host == "" {
		return badURI("has no host")
	}
	if host[0] == '.' || host[0] == '-' || strings.ContainsFunc(host, notHostByte) {
		return badURI("has a host that is no plain name or IPv4 address")
	}
	name, dotted := strings.CutSuffix(host, ".")
	// The hosts file lists localhost without a dot, and no DNS has it.
	if dotted && strings.EqualFold(name, "localhost") {
		return badURI("has a host that does not resolve")
	}
	labels := strings.Split(name, ".")
	if len(name) > maxName || !validLabels(labels) {
		return badURI("has a host that no name server can know")
	}
	if !numeric(labels) {
		return nil
	}
	// Differs: 2130706433, 0177.0.0.1, 127.1 and 127.0.0.1. are addresses to
	// some resolvers and names to others; only one reading is left.
	if _, err := netip.ParseAddr(host); err != nil {
		return badURI("has an IPv4 address that is no plain dotted quad")
	}
	return nil
}

func notHostByte(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-'
}

func validLabels(labels []string) bool {
	for _, l := range labels {
		if l == "" || len(l) > maxLabel {
			return false
		}
	}
	return true
}

// numeric reports whether every label is a number in one of the bases that
// inet_aton reads, so that the host could be taken for an address.
func numeric(labels []string) bool {
	for _, l := range labels {
		digits := "0123456789"
		if strings.HasPrefix(l, "0x") || strings.HasPrefix(l, "0X") {
			l, digits = l[2:], "0123456789abcdefABCDEF"
		}
		if strings.Trim(l, digits) != "" {
			return false
		}
	}
	return true
}
