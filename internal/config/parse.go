package config

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is how one variable is read and shown.
type kind struct {
	// read stores the value, or says what is wrong with it.
	read func(c *Config, value string) []complaint
	// show prints the effective value, masked where it must be.
	show func(c *Config) string
	// verbatim values keep the white space around them.
	verbatim bool
}

// span bounds a duration; why is the reason an operator gets to read.
type span struct {
	min, max time.Duration
	whole    bool // whole seconds only
	why      string
}

// duration reads Go's duration syntax within a span.
func duration(at func(*Config) *time.Duration, limit span) kind {
	return kind{
		read: func(c *Config, value string) []complaint {
			d, err := time.ParseDuration(value)
			switch {
			case plainNumber.MatchString(value) && err != nil:
				return []complaint{{echo(value) + " has no unit", "write " + strconv.Quote(value+"s") + " for seconds"}}
			case err != nil:
				return complain(echo(value) + " is not a duration")
			case d < limit.min || d > limit.max:
				return complain(fmt.Sprintf("%s is outside %s to %s: %s", echo(value), compact(limit.min), compact(limit.max), limit.why))
			case limit.whole && d%time.Second != 0:
				return complain(echo(value) + " is not a whole number of seconds, and Phorge's rows count in seconds")
			}
			*at(c) = d
			return nil
		},
		show: func(c *Config) string { return compact(*at(c)) },
	}
}

var plainNumber = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// compact prints a duration the way people write it in a configuration: 5m
// instead of 5m0s. Whole minutes up to five stay seconds ("300s"), as in the
// documentation's table.
func compact(d time.Duration) string {
	switch {
	case d%time.Hour == 0 && d != 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d%time.Minute == 0 && d > 5*time.Minute:
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
	case d%time.Second == 0:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return d.String()
}

// count reads a whole number between least and most.
func count(at func(*Config) *int, least, most int, why string) kind {
	return kind{
		read: func(c *Config, value string) []complaint {
			n, err := strconv.Atoi(value)
			if err != nil && !plainNumber.MatchString(strings.TrimLeft(value, "+-")) {
				return complain(echo(value) + " is not a whole number")
			}
			// A number too large for an int is out of range, not "no number".
			if err != nil || n < least || n > most {
				return complain(fmt.Sprintf("%s is not a whole number from %d to %d: %s", echo(value), least, most, why))
			}
			*at(c) = n
			return nil
		},
		show: func(c *Config) string { return strconv.Itoa(*at(c)) },
	}
}

// word reads one of a few fixed words.
func word[T ~string](at func(*Config) *T, allowed ...T) kind {
	return kind{
		read: func(c *Config, value string) []complaint {
			if !slices.Contains(allowed, T(value)) {
				return complain(echo(value) + " is none of the words it takes")
			}
			*at(c) = T(value)
			return nil
		},
		show: func(c *Config) string { return string(*at(c)) },
	}
}

// text reads a value that must match a pattern.
func text(at func(*Config) *string, pattern *regexp.Regexp, wrong string) kind {
	return kind{
		read: func(c *Config, value string) []complaint {
			if !pattern.MatchString(value) {
				return complain(echo(value) + " " + wrong)
			}
			*at(c) = value
			return nil
		},
		show: func(c *Config) string { return *at(c) },
	}
}

// dnsTarget is gRPC's explicit spelling of "resolve this name"; Temporal's
// client takes it in front of an address.
const dnsTarget = "dns:///"

// address reads host:port. needHost is for addresses that are dialled; one
// that is listened on may leave the host out and may ask for port 0, "any
// free port".
func address(at func(*Config) *string, needHost bool) kind {
	return kind{
		read: func(c *Config, value string) []complaint {
			bare := value
			if needHost {
				bare = strings.TrimPrefix(value, dnsTarget)
			}
			if wrong := addressFault(bare, needHost); wrong != "" {
				return complain(echo(value) + " " + wrong)
			}
			*at(c) = value
			return nil
		},
		show: func(c *Config) string { return *at(c) },
	}
}

func addressFault(value string, needHost bool) string {
	if strings.Contains(value, "://") {
		return "is a URL, not host and port"
	}
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		return "is not host and port"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || (n == 0 && needHost) {
		return "has no usable port number"
	}
	if host == "" && needHost {
		return "has no host"
	}
	if _, err := netip.ParseAddr(host); err != nil && !hostPattern.MatchString(host) {
		return "has a host that is neither an address nor a name"
	}
	return ""
}

// hostPattern admits what names of machines are made of; underscores occur in
// container networks.
var hostPattern = regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?\.?)*$`)
