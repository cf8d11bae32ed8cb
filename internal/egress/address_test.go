package egress_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"waybill/internal/egress"
	"waybill/internal/egress/rawsink"
)

// answers is a resolver with one answer; it counts the questions.
type answers struct {
	addrs []netip.Addr
	err   error
	asked atomic.Int32
}

func (a *answers) LookupNetIP(_ context.Context, network, _ string) ([]netip.Addr, error) {
	if network != "ip" {
		return nil, errors.New("not asked for both families")
	}
	a.asked.Add(1)
	return a.addrs, a.err
}

// found answers with addresses.
func found(addrs ...string) *answers {
	a := &answers{}
	for _, s := range addrs {
		a.addrs = append(a.addrs, netip.MustParseAddr(s))
	}
	return a
}

// seam is a dialer that goes to a local receiver whatever it is asked for, and
// pretends to have been where it was asked to go. Nothing leaves the machine.
type seam struct {
	receiver string            // where it really goes
	refuse   map[string]error  // by address without port
	pretend  map[string]string // peer to show for an address; its own by default

	mu     sync.Mutex
	dialed []string
}

func (s *seam) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	s.mu.Lock()
	s.dialed = append(s.dialed, network+" "+address)
	s.mu.Unlock()
	host, _, _ := net.SplitHostPort(address)
	if err := s.refuse[host]; err != nil {
		return nil, err
	}
	peer := address
	if other, ok := s.pretend[host]; ok {
		peer = other
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.receiver)
	return disguised{conn, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(peer))}, err
}

// disguised shows another peer address.
type disguised struct {
	net.Conn
	peer net.Addr
}

func (d disguised) RemoteAddr() net.Addr { return d.peer }

// named is a call of a name on port 80.
func named(name string) egress.Call {
	call := callTo(80, "/b/ok/x")
	call.Hostname, call.Host = name, name
	return call
}

func TestWhichAddressesAreUsed(t *testing.T) {
	tests := []struct {
		name   string
		answer []string
		dialed []string // nil: denied
	}{
		{"one A", []string{"93.184.216.34"}, []string{"tcp4 93.184.216.34:80"}},
		{"one AAAA", []string{"2606:2800:220:1::1"}, []string{"tcp6 [2606:2800:220:1::1]:80"}},
		{"A wins over AAAA", []string{"2606:2800:220:1::1", "93.184.216.34"}, []string{"tcp4 93.184.216.34:80"}},
		{"a bad AAAA beside A is not used", []string{"fd00::1", "93.184.216.34"}, []string{"tcp4 93.184.216.34:80"}},
		{"mapped A", []string{"::ffff:93.184.216.34"}, []string{"tcp4 93.184.216.34:80"}},
		{"NAT64 of a public address", []string{"64:ff9b::5db8:d822"}, []string{"tcp6 [64:ff9b::5db8:d822]:80"}},
		{"one bad A of two", []string{"93.184.216.34", "10.0.0.1"}, nil},
		{"one bad AAAA of two", []string{"2606:2800:220:1::1", "fd00::1"}, nil},
		{"bad mapped beside good A", []string{"93.184.216.34", "::ffff:127.0.0.1"}, nil},
		{"zone", []string{"fe80::1%lo"}, nil},
		{"zone on a public address", []string{"2606:2800:220:1::1%lo"}, nil},
	}
	// Every hostile form a name may resolve to; each is denied by default.
	for _, hostile := range []string{
		"0.0.0.0", "10.0.0.5", "100.100.100.200", "127.0.0.1", "127.255.255.254", "169.254.169.254", "169.254.170.2",
		"172.31.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.19.0.1", "198.51.100.1",
		"203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:0:7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1",
		"64:ff9b:1::a9fe:a9fe", "100::1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:2::1", "2001:10::1",
		"2001:db8::1", "2002:7f00:1::1", "2002:5db8:d822::1", "2606:2800:220:1::5efe:7f00:1",
		"2606:2800:220:1:200:5efe:a00:1", "3fff::1", "5f00::1", "fd00:ec2::254", "fc00::1", "fe80::1", "fec0::1", "ff02::1",
	} {
		tests = append(tests, struct {
			name   string
			answer []string
			dialed []string
		}{hostile, []string{hostile}, nil})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sink := newSink(t, rawsink.Config{})
			dialer, resolver := &seam{receiver: sink.Addr()}, found(tt.answer...)
			client := egress.New(egress.Config{Resolver: resolver, Dialer: dialer})
			got := client.Post(t.Context(), named("name.example"))
			if tt.dialed == nil {
				want(t, got, 0, denied())
			} else {
				want(t, got, 200, nil)
			}
			if !slices.Equal(dialer.dialed, tt.dialed) {
				t.Errorf("dialed %v, want %v", dialer.dialed, tt.dialed)
			}
			if n := resolver.asked.Load(); n != 1 {
				t.Errorf("%d lookups", n)
			}
		})
	}
}

// TestSpellings looks up names only, and dials plain addresses only.
func TestSpellings(t *testing.T) {
	tests := []struct {
		hostname string
		dialed   string // "": denied
		lookups  int32
	}{
		{"93.184.216.34", "tcp4 93.184.216.34:80", 0},
		{"[2606:2800:220:1::1]", "tcp6 [2606:2800:220:1::1]:80", 0},
		{"[::ffff:93.184.216.34]", "tcp4 93.184.216.34:80", 0},
		{"name.example", "tcp4 93.184.216.35:80", 1},
		{"name.example.", "tcp4 93.184.216.35:80", 1},
		{"intranet", "tcp4 93.184.216.35:80", 1},
		{"a_b.example", "tcp4 93.184.216.35:80", 1},
		{"127.0.0.1.example", "tcp4 93.184.216.35:80", 1},
		{"x0x7f", "tcp4 93.184.216.35:80", 1},
		{"1e3.e5", "tcp4 93.184.216.35:80", 1},
		{"127.0.0.1", "", 0}, {"[::1]", "", 0}, {"[::ffff:127.0.0.1]", "", 0}, {"[::ffff:a9fe:a9fe]", "", 0},
		{"2606:2800:220:1::1", "", 0}, {"::1", "", 0}, {"[93.184.216.34]", "", 0}, {"[name.example]", "", 0},
		{"[fe80::1%25lo]", "", 0}, {"[2606:2800:220:1::1%lo]", "", 0}, {"[::1", "", 0}, {"::1]", "", 0}, {"[]", "", 0},
		{"93.184.216.34.", "", 0}, {"1572395042", "", 0}, {"0x5db8d822", "", 0}, {"0X5DB8D822", "", 0}, {"0x", "", 0},
		{"013556154042", "", 0}, {"93.184.55330", "", 0}, {"0x5d.0xb8.0xd8.0x22", "", 0}, {"93.184.216.034", "", 0},
		{"093.184.216.34", "", 0}, {"0", "", 0}, {"name.1", "", 0}, {"name.0x1f.", "", 0}, {"1.2.3.4.5", "", 0},
		{"256.256.256.256", "", 0}, {"4294967297", "", 0}, {"name:80", "", 0}, {"name%2e", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.hostname, func(t *testing.T) {
			sink := newSink(t, rawsink.Config{})
			dialer, resolver := &seam{receiver: sink.Addr()}, found("93.184.216.35")
			client := egress.New(egress.Config{Resolver: resolver, Dialer: dialer})
			call := named(tt.hostname)
			call.Host = "h.example"
			got := client.Post(t.Context(), call)
			if tt.dialed == "" {
				want(t, got, 0, denied())
			} else if want(t, got, 200, nil); !slices.Equal(dialer.dialed, []string{tt.dialed}) {
				t.Errorf("dialed %v, want %s", dialer.dialed, tt.dialed)
			}
			if n := resolver.asked.Load(); n != tt.lookups {
				t.Errorf("%d lookups, want %d", n, tt.lookups)
			}
		})
	}
}

func TestLookupFaults(t *testing.T) {
	later := unsent(egress.CodeResolve)
	never := &egress.Fault{Code: egress.CodeResolve, NoSuchHost: true}
	tests := map[string]struct {
		err   error
		fault *egress.Fault
	}{
		"NXDOMAIN":             {&net.DNSError{Err: "no such host", IsNotFound: true}, never},
		"wrapped NXDOMAIN":     {&net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}, never},
		"no address":           {nil, never},
		"SERVFAIL":             {&net.DNSError{Err: "server misbehaving", IsTemporary: true}, later},
		"SERVFAIL of one half": {&net.DNSError{IsNotFound: true, IsTemporary: true}, later},
		"resolver's timeout":   {&net.DNSError{IsTimeout: true, IsNotFound: true}, later},
		"anything else":        {io.ErrUnexpectedEOF, later},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			resolver := &answers{err: tt.err}
			client := newClient(egress.Config{Resolver: resolver, Dialer: &seam{}})
			want(t, client.Post(t.Context(), named("name.example")), 0, tt.fault)
			if n := resolver.asked.Load(); n != 1 {
				t.Errorf("%d lookups", n)
			}
		})
	}
}

// rebinder answers well the first time and badly ever after.
type rebinder struct{ asked atomic.Int32 }

func (r *rebinder) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	if r.asked.Add(1) == 1 {
		return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// TestRebinding shows that there is no second lookup to give another answer,
// and that the next attempt judges what it was answered itself.
func TestRebinding(t *testing.T) {
	sink := newSink(t, rawsink.Config{})
	resolver, dialer := &rebinder{}, &seam{receiver: sink.Addr()}
	client := egress.New(egress.Config{Resolver: resolver, Dialer: dialer})
	got := client.Post(t.Context(), named("name.example"))
	want(t, got, 200, nil)
	if got.Peer != netip.MustParseAddrPort("93.184.216.34:80") || resolver.asked.Load() != 1 {
		t.Errorf("peer %v after %d lookups", got.Peer, resolver.asked.Load())
	}
	want(t, client.Post(t.Context(), named("name.example")), 0, denied())
	if !slices.Equal(dialer.dialed, []string{"tcp4 93.184.216.34:80"}) {
		t.Errorf("dialed %v", dialer.dialed)
	}
}

// TestPeerIsThePinnedOne hangs up on a connection that leads elsewhere.
func TestPeerIsThePinnedOne(t *testing.T) {
	for _, elsewhere := range []string{"127.0.0.1:80", "93.184.216.34:81", "[2606:2800:220:1::1]:80"} {
		sink := newSink(t, rawsink.Config{})
		dialer := &seam{receiver: sink.Addr(), pretend: map[string]string{"93.184.216.34": elsewhere}}
		client := egress.New(egress.Config{Resolver: found("93.184.216.34", "93.184.216.35"), Dialer: dialer})
		want(t, client.Post(t.Context(), named("name.example")), 0, denied())
		if len(dialer.dialed) != 1 || len(sink.Requests()) != 0 {
			t.Errorf("dialed %v, %d requests", dialer.dialed, len(sink.Requests()))
		}
	}
}

// TestNextAddress is tried when connecting failed, and only then.
func TestNextAddress(t *testing.T) {
	tests := []struct {
		name      string
		behaviour string
		refuse    map[string]error
		dials     int
		status    int
		fault     *egress.Fault
	}{
		{"first refuses", "ok", map[string]error{"93.184.216.34": io.EOF}, 2, 200, nil},
		{"first takes too long", "ok", map[string]error{"93.184.216.34": context.DeadlineExceeded}, 2, 200, nil},
		{"all refuse", "ok", map[string]error{"93.184.216.34": io.EOF, "93.184.216.35": io.EOF}, 2, 0, unsent(egress.CodeConnect)},
		{"first connects", "ok", nil, 1, 200, nil},
		{"first connects and closes", "close", nil, 1, 0, sent(egress.CodeNoAnswer)},
		{"first connects and resets", "reset", nil, 1, 0, sent(egress.CodeReceive)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sink := newSink(t, rawsink.Config{})
			dialer := &seam{receiver: sink.Addr(), refuse: tt.refuse}
			client := egress.New(egress.Config{Resolver: found("93.184.216.34", "93.184.216.35"), Dialer: dialer})
			call := named("name.example")
			call.RequestTarget = "/b/" + tt.behaviour + "/x"
			want(t, client.Post(t.Context(), call), tt.status, tt.fault)
			if len(dialer.dialed) != tt.dials || sink.Conns() > 1 {
				t.Errorf("dialed %v, %d connections", dialer.dialed, sink.Conns())
			}
		})
	}
}

// TestNextAddressHasTimeLeft although the first never answers.
func TestNextAddressHasTimeLeft(t *testing.T) {
	sink := newSink(t, rawsink.Config{})
	dialer := &firstStuck{seam: seam{receiver: sink.Addr()}}
	client := egress.New(egress.Config{Resolver: found("93.184.216.34", "93.184.216.35"), Dialer: dialer})
	call := named("name.example")
	call.Timeout = 4 * brief
	want(t, client.Post(t.Context(), call), 200, nil)
}

// firstStuck hangs on the first dial.
type firstStuck struct {
	seam
	dials atomic.Int32
}

func (f *firstStuck) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if f.dials.Add(1) == 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return f.seam.DialContext(ctx, network, address)
}

// TestLocalhost asks the system's resolver, as a hook with that name does.
func TestLocalhost(t *testing.T) {
	sink := newSink(t, rawsink.Config{})
	call := callTo(sink.Port(), "/b/ok/x")
	call.Hostname = "localhost"
	want(t, newClient(egress.Config{}).Post(t.Context(), call), 200, nil)
	want(t, egress.New(egress.Config{}).Post(t.Context(), call), 0, denied())
	if sink.Conns() != 1 {
		t.Errorf("%d connections", sink.Conns())
	}
}
