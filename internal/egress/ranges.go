package egress

import "net/netip"

// denied is compiled from two sources: the IPv4 networks are the default of
// Phorge's security.outbound-blacklist, the IPv6 ones their equivalents in
// IANA's IPv6 Special-Purpose Address Registry (each with its RFC) and what
// the registry marks as not globally reachable or as a transition mechanism
// that nobody hosts a receiver behind.
var denied = [...]string{
	// Phorge, security.outbound-blacklist.
	"0.0.0.0/8",          // this network, RFC 791; 0.0.0.0 reaches loopback on Linux
	"10.0.0.0/8",         // private, RFC 1918
	"100.64.0.0/10",      // shared by carriers, RFC 6598; also a cloud's metadata
	"127.0.0.0/8",        // loopback, RFC 1122
	"169.254.0.0/16",     // link-local, RFC 3927; clouds' metadata
	"172.16.0.0/12",      // private, RFC 1918
	"192.0.0.0/24",       // protocol assignments, RFC 6890
	"192.0.2.0/24",       // documentation, RFC 5737
	"192.88.99.0/24",     // 6to4 relays, RFC 7526
	"192.168.0.0/16",     // private, RFC 1918
	"198.18.0.0/15",      // benchmarking, RFC 2544
	"198.51.100.0/24",    // documentation, RFC 5737
	"203.0.113.0/24",     // documentation, RFC 5737
	"224.0.0.0/4",        // multicast, RFC 5771
	"240.0.0.0/4",        // reserved, RFC 1112
	"255.255.255.255/32", // broadcast, RFC 919

	// IPv6.
	"::/128",          // unspecified, RFC 4291
	"::1/128",         // loopback, RFC 4291
	"::/96",           // IPv4-compatible, deprecated, RFC 4291
	"::ffff:0:0:0/96", // IPv4-translated, RFC 2765
	"64:ff9b:1::/48",  // local-use NAT64, RFC 8215
	"100::/64",        // discard, RFC 6666
	"100:0:0:1::/64",  // dummy prefix, RFC 9780
	"2001::/23",       // protocol assignments, RFC 2928: Teredo, ORCHID, benchmarking
	"2001:db8::/32",   // documentation, RFC 3849
	"2002::/16",       // 6to4, RFC 3056
	"3fff::/20",       // documentation, RFC 9637
	"5f00::/16",       // segment routing, RFC 9602
	"fc00::/7",        // unique local, RFC 4193; a cloud's metadata
	"fe80::/10",       // link-local, RFC 4291
	"fec0::/10",       // site-local, deprecated, RFC 3879
	"ff00::/8",        // multicast, RFC 4291
}

// DefaultDeny returns the networks that are denied unless opened: Phorge's own
// list and its IPv6 equivalents. The NAT64 prefix 64:ff9b::/96 is not among
// them: it is judged by the IPv4 address inside, like every such form.
func DefaultDeny() []netip.Prefix {
	out := make([]netip.Prefix, len(denied))
	for i, network := range denied {
		out[i] = netip.MustParsePrefix(network)
	}
	return out
}

// embedding is one way for an IPv6 address to carry an IPv4 address.
type embedding struct {
	prefix netip.Prefix
	octets [4]int // where the four octets stand, in order
	mask   byte   // XORed to each
	isatap bool   // told by its interface identifier, whatever the prefix
}

// embeddings is the table of forms that reach an IPv4 host through a
// translator, a relay or the kernel. The IPv4-mapped form is missing: Unmap
// has dealt with it before. Local-use NAT64 stands there twice, because its
// /48 may be used whole or as a /96; both readings must be allowed.
var embeddings = [...]embedding{
	{prefix: netip.MustParsePrefix("::/96"), octets: [4]int{12, 13, 14, 15}},                 // RFC 4291 section 2.5.5.1
	{prefix: netip.MustParsePrefix("::ffff:0:0:0/96"), octets: [4]int{12, 13, 14, 15}},       // RFC 2765 section 2.1
	{prefix: netip.MustParsePrefix("64:ff9b::/96"), octets: [4]int{12, 13, 14, 15}},          // RFC 6052 section 2.1
	{prefix: netip.MustParsePrefix("64:ff9b:1::/48"), octets: [4]int{12, 13, 14, 15}},        // RFC 8215, as a /96
	{prefix: netip.MustParsePrefix("64:ff9b:1::/48"), octets: [4]int{6, 7, 9, 10}},           // RFC 6052 section 2.2, /48
	{prefix: netip.MustParsePrefix("2002::/16"), octets: [4]int{2, 3, 4, 5}},                 // RFC 3056 section 2
	{prefix: netip.MustParsePrefix("2001::/32"), octets: [4]int{12, 13, 14, 15}, mask: 0xff}, // RFC 4380 section 4, the client
	{isatap: true, octets: [4]int{12, 13, 14, 15}},                                           // RFC 5214 section 6.1
}
