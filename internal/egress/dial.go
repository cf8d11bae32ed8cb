package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// errDenied is how the backstop and the peer check tell connect that an
// address was not the checked one or not allowed after all.
var errDenied = errors.New("egress: address not allowed")

// connect opens a connection to the first address that takes one. Only a
// connection that was never opened moves on to the next address: nothing has
// been written then.
func (c *Client) connect(ctx context.Context, addrs []netip.Addr, port uint16, timeout time.Duration,
) (net.Conn, netip.AddrPort, *Fault) {
	var fault *Fault
	for i, addr := range addrs {
		peer := netip.AddrPortFrom(addr, port)
		// Every address but the last has its share of the time only, so that
		// one that swallows packets leaves something for the others.
		share := timeout / time.Duration(len(addrs))
		if i == len(addrs)-1 {
			share = timeout
		}
		conn, err := c.dialPinned(ctx, peer, share)
		if err == nil {
			return conn, peer, nil
		}
		fault = connectFault(ctx, err)
		if fault.Denied || ctx.Err() != nil {
			break
		}
	}
	return nil, netip.AddrPort{}, fault
}

// dialPinned connects to peer and to nothing else.
func (c *Client) dialPinned(ctx context.Context, peer netip.AddrPort, share time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	network := "tcp6"
	if peer.Addr().Is4() {
		network = "tcp4"
	}
	var d dialer = &net.Dialer{
		Control: c.backstop(peer),
		// Probes make no sense on a connection that lives for seconds.
		KeepAlive: -1,
	}
	if c.cfg.Dialer != nil {
		d = c.cfg.Dialer
	}
	conn, err := d.DialContext(ctx, network, peer.String())
	if err != nil {
		return nil, err
	}
	reached, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || netip.AddrPortFrom(reached.Addr().Unmap(), reached.Port()) != peer {
		conn.Close()
		return nil, errDenied
	}
	return conn, nil
}

// backstop returns the check that the kernel's socket is about to go where the
// policy was asked about. By construction it never refuses; it is there for
// the day somebody changes the construction.
func (c *Client) backstop(peer netip.AddrPort) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || to != peer || !strings.HasPrefix(network, "tcp") || !c.cfg.Policy.Allows(to.Addr()) {
			return errDenied
		}
		return nil
	}
}

// connectFault names the reason why there is no connection.
func connectFault(ctx context.Context, err error) *Fault {
	if errors.Is(err, errDenied) {
		return &Fault{Denied: true}
	}
	if fault := ended(ctx, err); fault != nil {
		return fault
	}
	return &Fault{Code: CodeConnect}
}

// guard makes conn fail at ctx's deadline, and at once when ctx is cancelled.
// The returned function takes it off.
func guard(ctx context.Context, conn net.Conn) (remove func()) {
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return func() { stop() }
}

// secure returns the stream to talk HTTP on: conn itself, or TLS on it.
func (c *Client) secure(ctx context.Context, conn net.Conn, call Call) (net.Conn, *Fault) {
	if call.Scheme == "http" {
		return conn, nil
	}
	stream := tls.Client(conn, &tls.Config{
		ServerName: strings.Trim(call.Hostname, "[]"),
		RootCAs:    c.cfg.RootCAs,
		MinVersion: tls.VersionTLS12,
		Time:       c.cfg.Now,
	})
	if err := stream.HandshakeContext(ctx); err != nil {
		return nil, handshakeFault(ctx, err)
	}
	return stream, nil
}

// handshakeFault tells a certificate that was looked at and not believed from
// every other way in which a handshake ends.
func handshakeFault(ctx context.Context, err error) *Fault {
	var unverified *tls.CertificateVerificationError
	if errors.As(err, &unverified) {
		return &Fault{Code: CodeCertificate}
	}
	if fault := ended(ctx, err); fault != nil {
		return fault
	}
	return &Fault{Code: CodeTLS}
}
