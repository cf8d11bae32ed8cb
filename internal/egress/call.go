package egress

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Call is one POST to be made. Hostname decides where it goes; Host and
// RequestTarget are written as they are, byte for byte.
type Call struct {
	// Scheme is "http" or "https", in lower case.
	Scheme string
	// Host is the Host header's value, case and port kept as given.
	Host string
	// Hostname is what is looked up and what a certificate must be for: a
	// name, a dotted quad, or an IPv6 address in brackets.
	Hostname string
	// Port is the effective port in decimal, 1 to 65535.
	Port string
	// RequestTarget begins with "/" and may hold any byte but controls and
	// the space.
	RequestTarget string
	// Header holds further fields. Those that Post writes itself or that
	// frame, upgrade or repeat a request are refused with CodeMalformed.
	Header http.Header
	// Body is sent once, with its length, as it is.
	Body []byte
	// BasicAuth is sent in Authorization; nil means none.
	BasicAuth *Credentials
	// Timeout bounds the whole exchange from the moment of the call; 0 means
	// DefaultTimeout.
	Timeout time.Duration
}

// Credentials are a user name and a password for Basic authentication. They
// print as a placeholder.
type Credentials struct {
	User, Password string
}

// Format keeps credentials out of every fmt verb.
func (Credentials) Format(s fmt.State, _ rune) { fmt.Fprint(s, "[credentials]") }

// MarshalText keeps credentials out of JSON and structured logs.
func (Credentials) MarshalText() ([]byte, error) { return []byte("[credentials]"), nil }

// Format keeps the URL, the header and the body out of every fmt verb: hook
// URLs are secrets.
func (Call) Format(s fmt.State, _ rune) { fmt.Fprint(s, "[call]") }

// MarshalText keeps calls out of JSON and structured logs.
func (Call) MarshalText() ([]byte, error) { return []byte("[call]"), nil }

// wire returns the bytes of the request and the port to dial; false when the
// call cannot be written as one well-formed request.
func (c Call) wire(userAgent string) ([]byte, uint16, bool) {
	port, err := strconv.ParseUint(c.Port, 10, 16)
	switch {
	case err != nil || port == 0,
		c.Scheme != "http" && c.Scheme != "https",
		c.Host == "" || !httpguts.ValidHostHeader(c.Host),
		!validTarget(c.RequestTarget),
		!httpguts.ValidHeaderFieldValue(userAgent),
		!validHeader(c.Header):
		return nil, 0, false
	}
	var b bytes.Buffer
	b.Grow(1024 + len(c.Body)) // 1 KiB: the usual head
	b.WriteString("POST " + c.RequestTarget + " HTTP/1.1\r\nHost: " + c.Host + "\r\n")
	if c.BasicAuth != nil {
		pair := c.BasicAuth.User + ":" + c.BasicAuth.Password
		b.WriteString("Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(pair)) + "\r\n")
	}
	// Connection: close tells the receiver what is going to happen anyway.
	b.WriteString("User-Agent: " + userAgent + "\r\nConnection: close\r\n")
	// Write to a bytes.Buffer cannot fail; it sorts the fields.
	_ = c.Header.Write(&b)
	b.WriteString("Content-Length: " + strconv.Itoa(len(c.Body)) + "\r\n\r\n")
	b.Write(c.Body)
	return b.Bytes(), uint16(port), true
}

// validTarget says whether t can stand between the two spaces of a request
// line. Bytes from 0x80 up are allowed: hooks exist that have them raw.
func validTarget(t string) bool {
	if !strings.HasPrefix(t, "/") {
		return false
	}
	for i := range len(t) {
		if t[i] <= ' ' || t[i] == 0x7f {
			return false
		}
	}
	return true
}

// validHeader says whether every field is well formed and may be set by a caller.
func validHeader(h http.Header) bool {
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) || reserved(name) {
			return false
		}
		if slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }) {
			return false
		}
	}
	return true
}

// reserved names the fields that Post writes itself, that frame or upgrade the
// message, that ask for an answer this package would not expand, or that tell
// intermediaries a POST may be repeated.
func reserved(name string) bool {
	switch strings.ToLower(name) {
	case "host", "authorization", "user-agent", "content-length",
		"connection", "keep-alive", "proxy-connection", "proxy-authorization",
		"te", "trailer", "transfer-encoding", "upgrade",
		"expect", "accept-encoding",
		"idempotency-key", "x-idempotency-key":
		return true
	}
	return false
}
