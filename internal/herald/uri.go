package herald

import (
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Target is where and how a hook is called. It is as secret as the URI it came
// from: printing and marshalling show scheme and host only.
type Target struct {
	// Scheme is "http" or "https".
	Scheme string
	// Host is the Host header as curl writes it: the name as it was typed, and
	// the port unless it is the scheme's own.
	Host string
	// Hostname is what is resolved and verified, without port.
	Hostname string
	// Port is the port to dial, defaults filled in; never 0.
	Port uint16
	// RequestTarget is the request line's middle part, byte for byte.
	RequestTarget string
	// User is nil when the URI carries no user information.
	User *Userinfo
}

// Userinfo is the decoded user information of a URI.
type Userinfo struct {
	Name     string
	Password string
}

// BasicAuth is the value of the Authorization header. Without a password the
// name still ends in a colon, as RFC 7617 and curl have it.
func (u Userinfo) BasicAuth() string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(u.Name+":"+u.Password))
}

// Format hides name and password from every verb.
func (u Userinfo) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, "(userinfo withheld)") }

// MarshalJSON hides name and password.
func (u Userinfo) MarshalJSON() ([]byte, error) { return []byte(`"(userinfo withheld)"`), nil }

// String shows scheme and host; paths and queries of webhooks hold tokens.
func (t Target) String() string { return t.Scheme + "://" + t.Host + "/..." }

// GoString keeps %#v from listing the fields.
func (t Target) GoString() string { return t.String() }

// Format covers the verbs that would bypass String.
func (t Target) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, t.String()) }

// MarshalJSON shows what String shows.
func (t Target) MarshalJSON() ([]byte, error) { return appendString(nil, t.String()), nil }

// ParseURI reads a hook's URI with PHP's idea of what is acceptable (PhutilURI
// over parse_url) and curl's idea of what is then sent. It resolves nothing, so
// an acceptable URI may still turn out to be denied. The error is a *Fault and
// means HookFailure(HookURI).
//
// Differs: where PHP accepts and curl then fails without sending anything
// (spaces, control characters, port 0, two '@'), and for IPv4 addresses in any
// form but the dotted quad, the URI is refused here.
func ParseURI(uri string) (Target, error) {
	if strings.ContainsFunc(uri, isSpaceOrControl) {
		return Target{}, badURI("holds a space or a control character")
	}
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return Target{}, badURI("does not begin with http:// or https://")
	}
	if ambiguous(rest) {
		return Target{}, badURI("is ambiguous: a colon behind ? or # in the authority")
	}
	// PhutilURI puts a slash before a query that follows the host directly;
	// that changes nothing about where the authority ends.
	authority, tail := rest, ""
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority, tail = rest[:end], rest[end:]
	}
	t := Target{Scheme: scheme, RequestTarget: requestTarget(tail)}
	if err := t.setAuthority(authority); err != nil {
		return Target{}, err
	}
	return t, nil
}

func isSpaceOrControl(r rune) bool { return r <= ' ' || r == 0x7f }

// ambiguous is Phorge's T12526 rule: clients disagree about where the host of
// http://a#@b:80/ is, so nobody gets to choose.
func ambiguous(rest string) bool {
	authority, _, _ := strings.Cut(rest, "/")
	at := strings.IndexAny(authority, "?#")
	return at >= 0 && strings.Contains(rest[at:], ":")
}

func (t *Target) setAuthority(authority string) error {
	// curl takes a backslash for a bad host, browsers take it for a slash.
	if strings.Contains(authority, `\`) {
		return badURI("holds a backslash before the path")
	}
	hostport := authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		hostport = authority[at+1:]
		user, err := parseUserinfo(authority[:at])
		if err != nil {
			return err
		}
		t.User = user
	}
	host, port, err := splitPort(hostport, defaultPort(t.Scheme))
	if err != nil {
		return err
	}
	if err := checkHost(host); err != nil {
		return err
	}
	t.Hostname, t.Port, t.Host = host, port, host
	if port != defaultPort(t.Scheme) {
		t.Host += ":" + strconv.Itoa(int(port))
	}
	return nil
}

func defaultPort(scheme string) uint16 {
	if scheme == "https" {
		return 443
	}
	return 80
}

// splitPort reads the port as parse_url and curl both do: after the last colon,
// at most five digits, leading zeros allowed, nothing means the default.
func splitPort(hostport string, standard uint16) (string, uint16, error) {
	at := strings.LastIndexByte(hostport, ':')
	if at < 0 {
		return hostport, standard, nil
	}
	host, digits := hostport[:at], hostport[at+1:]
	if digits == "" {
		return host, standard, nil
	}
	// ParseUint accepts no sign, so "+80" (fine with parse_url) is refused as
	// curl refuses it.
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || len(digits) > 5 || n == 0 {
		return "", 0, badURI("has a port that is no number from 1 to 65535")
	}
	return host, uint16(n), nil
}

// parseUserinfo decodes user[:password]. An empty one sends no header.
func parseUserinfo(info string) (*Userinfo, error) {
	if strings.Contains(info, "@") {
		// PHP splits at the last '@', curl at the first.
		return nil, badURI("holds two @ before the path")
	}
	name, password, _ := strings.Cut(info, ":")
	user := &Userinfo{Name: percentDecode(name), Password: percentDecode(password)}
	if strings.ContainsRune(user.Name+user.Password, 0) {
		return nil, badURI("holds a NUL in its user information")
	}
	if *user == (Userinfo{}) {
		return nil, nil
	}
	return user, nil
}

// percentDecode is PHP's rawurldecode: what is no valid escape stays as it is.
func percentDecode(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if c, ok := escapedByte(s[i:]); ok {
			out = append(out, c)
			i += 2
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

func escapedByte(s string) (byte, bool) {
	if len(s) < 3 || s[0] != '%' {
		return 0, false
	}
	high, okHigh := hexDigit(s[1])
	low, okLow := hexDigit(s[2])
	return high<<4 | low, okHigh && okLow
}
