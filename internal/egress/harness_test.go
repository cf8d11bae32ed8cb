package egress_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"waybill/internal/egress"
	"waybill/internal/egress/rawsink"
)

// brief is long enough for a loopback exchange on a busy machine and short
// enough to wait for in the tests that want it to pass.
const brief = 500 * time.Millisecond

// loopback is the default policy with this machine opened.
func loopback() *egress.Policy {
	return egress.NewPolicy(egress.DefaultDeny(), prefixes("127.0.0.0/8", "::1/128"))
}

func prefixes(networks ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(networks))
	for i, n := range networks {
		out[i] = netip.MustParsePrefix(n)
	}
	return out
}

// newClient returns a client that may call this machine.
func newClient(cfg egress.Config) *egress.Client {
	if cfg.Policy == nil {
		cfg.Policy = loopback()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return egress.New(cfg)
}

// newSink starts a receiver that wastes no time where only pace is meant and
// waits for real where a client is meant to lose patience.
func newSink(t testing.TB, cfg rawsink.Config) *rawsink.Sink {
	t.Helper()
	cfg.Wait = func(ctx context.Context, d time.Duration) {
		if d >= time.Second {
			<-ctx.Done()
		}
	}
	sink, err := rawsink.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sink.Close)
	return sink
}

// callTo is a call of 127.0.0.1 at a port.
func callTo(port int, target string) egress.Call {
	p := strconv.Itoa(port)
	return egress.Call{
		Scheme: "http", Host: "127.0.0.1:" + p, Hostname: "127.0.0.1", Port: p,
		RequestTarget: target,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          []byte("{}\n"),
		Timeout:       20 * time.Second,
	}
}

// receiver is a listener whose every connection is handled by the test.
type receiver struct {
	net.Listener
	conns atomic.Int32
}

// serve starts a receiver. handle's connection is closed after it; cut at the
// end of the test in any case.
func serve(t testing.TB, handle func(net.Conn)) *receiver {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{Listener: listener}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.conns.Add(1)
			t.Cleanup(func() { conn.Close() })
			go func() {
				defer conn.Close()
				handle(conn)
			}()
		}
	}()
	return r
}

func (r *receiver) port() int { return r.Addr().(*net.TCPAddr).Port }

// reset makes closing conn a reset.
func reset(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }

// readHead reads until the blank line, byte by byte, and leaves the body.
func readHead(conn net.Conn) {
	var last [4]byte
	for last != [4]byte{'\r', '\n', '\r', '\n'} {
		copy(last[:], last[1:])
		if _, err := conn.Read(last[3:]); err != nil {
			return
		}
	}
}

// want compares an outcome with what it must be: a status, or a fault.
func want(t *testing.T, got egress.Outcome, status int, fault *egress.Fault) {
	t.Helper()
	if got.Status != status {
		t.Errorf("status %d, want %d", got.Status, status)
	}
	switch {
	case fault == nil && got.Fault != nil:
		t.Errorf("fault %+v, want none", *got.Fault)
	case fault != nil && got.Fault == nil:
		t.Errorf("no fault, want %+v", *fault)
	case fault != nil && *got.Fault != *fault:
		t.Errorf("fault %+v, want %+v", *got.Fault, *fault)
	}
}

// sent is a fault after the request has left.
func sent(code int) *egress.Fault {
	return &egress.Fault{Code: code, Timeout: code == egress.CodeTimeout, BodySent: true}
}

// unsent is a fault before anything has left.
func unsent(code int) *egress.Fault {
	return &egress.Fault{Code: code, Timeout: code == egress.CodeTimeout}
}

func denied() *egress.Fault { return &egress.Fault{Denied: true} }

// authority is a certificate authority made for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert, key}
}

// pool trusts the authority alone.
func (a authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// server is a TLS configuration for localhost and 127.0.0.1, changed by edit.
func (a authority) server(t testing.TB, edit func(*x509.Certificate)) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "receiver"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if edit != nil {
		edit(template)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
}
