package config

import (
	"net/netip"
	"strconv"
	"strings"
)

// networks reads a list of CIDR networks separated by commas or spaces, and
// complains about every wrong item.
func networks(at func(*Config) *[]netip.Prefix) kind {
	return kind{
		read: func(c *Config, value string) []complaint {
			var found []netip.Prefix
			var complaints []complaint
			for _, item := range items(value) {
				network, wrong := network(item)
				if wrong != nil {
					complaints = append(complaints, *wrong)
					continue
				}
				found = append(found, network)
			}
			if complaints == nil {
				*at(c) = found
			}
			return complaints
		},
		show: func(c *Config) string {
			return join(*at(c), netip.Prefix.String)
		},
	}
}

// network reads one network. Anything ambiguous is refused with its plain
// spelling: a rule about addresses must mean what its author thinks it does.
func network(item string) (netip.Prefix, *complaint) {
	if addr, err := netip.ParseAddr(item); err == nil && addr.Zone() == "" {
		return netip.Prefix{}, &complaint{
			echo(item) + " is an address without a prefix length",
			"for this one address write " + netip.PrefixFrom(addr, addr.BitLen()).String(),
		}
	}
	network, err := netip.ParsePrefix(item)
	if err != nil {
		return netip.Prefix{}, &complaint{wrong: echo(item) + " is not a network"}
	}
	if network.Addr().Is4In6() {
		return netip.Prefix{}, &complaint{
			echo(item) + " is an IPv4 network in IPv6 spelling",
			"write it as IPv4, for example 10.0.0.0/8",
		}
	}
	if network != network.Masked() {
		return netip.Prefix{}, &complaint{
			echo(item) + " has address bits beyond its prefix length",
			"the network is " + network.Masked().String(),
		}
	}
	return network, nil
}

// ports reads a list of TCP ports.
func ports(at func(*Config) *[]uint16) kind {
	return kind{
		read: func(c *Config, value string) []complaint {
			var found []uint16
			var complaints []complaint
			for _, item := range items(value) {
				n, err := strconv.ParseUint(item, 10, 16)
				if err != nil || n == 0 {
					complaints = append(complaints, complaint{wrong: echo(item) + " is not a port from 1 to 65535"})
					continue
				}
				found = append(found, uint16(n))
			}
			// A value of nothing but commas would otherwise close every port.
			if found == nil && complaints == nil {
				return complain("the list has no item")
			}
			if complaints == nil {
				*at(c) = found
			}
			return complaints
		},
		show: func(c *Config) string {
			return join(*at(c), func(port uint16) string { return strconv.Itoa(int(port)) })
		},
	}
}

// items splits a list at commas and white space.
func items(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool {
		return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r'
	})
}

func join[T any](list []T, text func(T) string) string {
	parts := make([]string, 0, len(list))
	for _, item := range list {
		parts = append(parts, text(item))
	}
	return strings.Join(parts, ",")
}
