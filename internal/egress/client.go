package egress

import (
	"context"
	"crypto/x509"
	"net"
	"net/netip"
	"time"

	"waybill/internal/planted"
)

// DefaultTimeout is used for a Call that states none: the 15 s Phorge gives the
// whole exchange.
const DefaultTimeout = 15 * time.Second

// resolver is what the client asks for the addresses of a name;
// *net.Resolver has it. It must come back when ctx ends.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// dialer opens one connection to an address that has been checked;
// *net.Dialer has it.
type dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Config is what a Client is made of. The zero value is safe: it denies what
// Phorge denies, trusts the system's roots and asks the system's resolver.
type Config struct {
	// Policy says which addresses may be dialled; nil means DefaultDeny and
	// nothing opened.
	Policy *Policy
	// RootCAs are the trusted certificate authorities; nil means the system's.
	RootCAs *x509.CertPool
	// Resolver is asked once per attempt; nil means net.DefaultResolver.
	Resolver resolver
	// Dialer replaces the package's own one, which checks the policy once more
	// on the socket itself. Whatever a replacement connects to must still have
	// the pinned peer address. For tests.
	Dialer dialer
	// UserAgent is sent with every request; empty means "waybill".
	UserAgent string
	// Now is the clock behind Outcome.Duration and certificate validity. Nil
	// leaves Duration zero and certificates to the system's clock.
	Now func() time.Time
}

// Client makes POSTs. It is safe for concurrent use and holds no connections.
type Client struct {
	cfg Config
}

// New returns a Client for cfg. It opens nothing.
func New(cfg Config) *Client {
	if cfg.Policy == nil {
		cfg.Policy = NewPolicy(DefaultDeny(), nil)
	}
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "waybill"
	}
	return &Client{cfg: cfg}
}

// Outcome is what one attempt observed.
type Outcome struct {
	// Status is the answer's HTTP status, 100 to 999; 0 when there is a Fault.
	Status int
	// Fault says why there is no status; nil when there is one.
	Fault *Fault
	// Duration is the time from the call to its end by Config.Now.
	Duration time.Duration
	// Peer is the address that was connected to; the zero value when none was.
	Peer netip.AddrPort
}

// Post makes one attempt: it looks up, connects, sends call at most once and
// reads the answer, all within call.Timeout and ctx. A ctx that is cancelled
// ends it with CodeCancelled, a ctx whose deadline passes with CodeTimeout;
// in both cases Fault.BodySent says whether the receiver may have the request.
// An answer that is there completely when either is noticed counts all the same.
func (c *Client) Post(ctx context.Context, call Call) Outcome {
	began := c.now()
	timeout := call.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := c.attempt(ctx, call, timeout)
	if broken := out.Fault != nil && (out.Fault.Code == CodeReceive || out.Fault.Code == CodeNoAnswer); broken && planted.Is(planted.Replay) {
		out = c.attempt(ctx, call, timeout)
	}
	out.Duration = c.now().Sub(began)
	return out
}

// attempt is Post without the clock.
func (c *Client) attempt(ctx context.Context, call Call, timeout time.Duration) Outcome {
	request, port, ok := call.wire(c.cfg.UserAgent)
	if !ok {
		return Outcome{Fault: &Fault{Code: CodeMalformed}}
	}
	if fault := ended(ctx, nil); fault != nil {
		return Outcome{Fault: fault}
	}
	addrs, fault := c.addresses(ctx, call.Hostname)
	if fault != nil {
		return Outcome{Fault: fault}
	}
	conn, peer, fault := c.connect(ctx, addrs, port, timeout)
	if fault != nil {
		return Outcome{Fault: fault}
	}
	// Closing the TCP connection and never the TLS one: a TLS goodbye may wait
	// five seconds for a receiver that has stopped reading.
	defer conn.Close()
	defer guard(ctx, conn)()
	stream, fault := c.secure(ctx, punctual{conn}, call)
	if fault != nil {
		return Outcome{Fault: fault, Peer: peer}
	}
	status, fault := exchange(ctx, conn, stream, request)
	return Outcome{Status: status, Fault: fault, Peer: peer}
}

// now reads the clock where there is one.
func (c *Client) now() time.Time {
	if c.cfg.Now == nil {
		return time.Time{}
	}
	return c.cfg.Now()
}
