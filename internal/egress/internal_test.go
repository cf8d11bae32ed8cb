package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
)

// TestBackstop asks the check in front of the socket what the checks before it
// never let through.
func TestBackstop(t *testing.T) {
	open := netip.MustParsePrefix("127.0.0.0/8")
	client := New(Config{Policy: NewPolicy(DefaultDeny(), []netip.Prefix{open})})
	tests := []struct {
		pinned, network, address string
		allowed                  bool
	}{
		{"127.0.0.1:80", "tcp4", "127.0.0.1:80", true},
		{"127.0.0.1:80", "tcp4", "127.0.0.1:81", false},
		{"127.0.0.1:80", "tcp4", "127.0.0.2:80", false},
		{"127.0.0.1:80", "udp4", "127.0.0.1:80", false},
		{"127.0.0.1:80", "tcp4", "nonsense", false},
		{"10.0.0.1:80", "tcp4", "10.0.0.1:80", false},
		{"[::1]:80", "tcp6", "[::1]:80", false},
		{"93.184.216.34:80", "tcp4", "93.184.216.34:80", true},
	}
	for _, tt := range tests {
		check := client.backstop(netip.MustParseAddrPort(tt.pinned))
		if err := check(tt.network, tt.address, nil); (err == nil) != tt.allowed {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// TestBackstopIsOnTheSocket dials past the checks: a listener on this machine,
// which the policy does not allow, must not see a connection.
func TestBackstopIsOnTheSocket(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	peer := netip.MustParseAddrPort(listener.Addr().String())
	client := New(Config{})
	conn, _, fault := client.connect(t.Context(), []netip.Addr{peer.Addr()}, peer.Port(), DefaultTimeout)
	if conn != nil || fault == nil || *fault != (Fault{Denied: true}) {
		t.Errorf("connection %v, fault %v", conn, fault)
	}
}

// TestSentences holds every code and that none shares its sentence.
func TestSentences(t *testing.T) {
	faults := []Fault{
		{Denied: true}, {Code: CodeResolve, NoSuchHost: true}, {Code: CodeResolve}, {Code: CodeNotHTTP},
		{Code: CodeMalformed}, {Code: CodeConnect}, {Code: CodeTruncated}, {Code: CodeTimeout, Timeout: true},
		{Code: CodeTLS}, {Code: CodeCancelled}, {Code: CodeNoAnswer}, {Code: CodeSend}, {Code: CodeReceive},
		{Code: CodeCertificate}, {},
	}
	seen := map[string]bool{}
	for _, f := range faults {
		text := f.Error()
		if seen[text] || !strings.HasSuffix(text, ".") || strings.ContainsAny(text, "%:/0123456789") {
			t.Errorf("%+v: %q", f, text)
		}
		seen[text] = true
	}
	if errors.Unwrap(&Fault{}) != nil {
		t.Error("a fault wraps something")
	}
}

// TestTapKeepsTheEndForLater has data and the end arrive together, as TLS does.
func TestTapKeepsTheEndForLater(t *testing.T) {
	broken := errors.New("broken")
	for _, end := range []error{io.EOF, broken} {
		source := iotest.DataErrReader(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(end)))
		in := &tap{conn: source, budget: -1}
		var buf [8]byte
		n, err := in.Read(buf[:])
		if n != 3 || err != nil || in.eof || in.failed != nil || !in.heard {
			t.Errorf("first: %d, %v, %+v", n, err, in)
		}
		n, err = in.Read(buf[:])
		if n != 0 || !errors.Is(err, end) || in.eof != errors.Is(end, io.EOF) || (in.failed == nil) != errors.Is(end, io.EOF) {
			t.Errorf("second: %d, %v, %+v", n, err, in)
		}
	}
}

// TestTapEndsAtItsBudget to the byte.
func TestTapEndsAtItsBudget(t *testing.T) {
	in := &tap{conn: strings.NewReader("abcdef"), budget: 4}
	all, err := io.ReadAll(in)
	if string(all) != "abcd" || !errors.Is(err, errHeadTooLong) {
		t.Errorf("%q, %v", all, err)
	}
}

// FuzzAnswer reads whatever a receiver may send: there is a status or a fault,
// never both, never neither, and nothing panics.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"", "H", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 204\r\n\r\n", "HTTP/1.0 200 OK\n\nbody", "HTTP/2 200\r\n\r\n",
		"HTTP/1.1 100 C\r\n\r\n", "HTTP/1.1 103 E\r\nLink: x\r\n\r\nHTTP/1.1 500 X\r\nContent-Length: 3\r\n\r\nok\n",
		"HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n", "HTTP/1.1 000 X\r\n\r\n", "\x15\x03\x01", "SSH-2.0-x\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\nX: y\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		in := &tap{conn: bytes.NewReader(answer), budget: headLimit}
		status, fault := readAnswer(context.Background(), in)
		if (status == 0) != (fault != nil) || status < 0 || status > 999 || (status > 0 && status < 100) {
			t.Errorf("status %d, fault %v", status, fault)
		}
		if fault != nil && (fault.Timeout || fault.Denied || fault.NoSuchHost) {
			t.Errorf("fault %+v of a stream that just ends", *fault)
		}
	})
}

// FuzzLiteral: what is taken for an address is spelt the one plain way, and
// what goes to a resolver cannot be read as an address by anybody.
func FuzzLiteral(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "[::1]", "::1", "0x7f.1", "2130706433", "name.example", "1.2.3.4.", "", "a.", "[", "%", "127.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, hostname string) {
		addrs, fault := literal(hostname)
		switch {
		case fault != nil:
		case addrs != nil && addrs[0].Is4() && !strings.HasPrefix(hostname, "["):
			if addrs[0].String() != hostname {
				t.Errorf("%q was taken for %v", hostname, addrs[0])
			}
		case addrs == nil:
			last := hostname[strings.LastIndexByte(strings.TrimSuffix(hostname, "."), '.')+1:]
			if last == "" || last[0] >= '0' && last[0] <= '9' && strings.Trim(last, "0123456789.") == "" {
				t.Errorf("%q goes to a resolver", hostname)
			}
		}
	})
}
