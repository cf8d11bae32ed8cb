package egress_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"waybill/internal/egress"
	"waybill/internal/egress/rawsink"
)

// secureCall is a call of a TLS receiver by its address.
func secureCall(port int, target string) egress.Call {
	call := callTo(port, target)
	call.Scheme = "https"
	return call
}

func TestTLSBehaviours(t *testing.T) {
	ca := newAuthority(t)
	sink := newSink(t, rawsink.Config{TLS: ca.server(t, nil)})
	client := newClient(egress.Config{RootCAs: ca.pool()})
	for name, expected := range outcomes {
		t.Run(name, func(t *testing.T) {
			call := secureCall(sink.Port(), "/b/"+name+"/"+name)
			if expected.code == egress.CodeTimeout {
				call.Timeout = brief
			}
			got := client.Post(t.Context(), call)
			if expected.code != 0 {
				want(t, got, 0, sent(expected.code))
			} else {
				want(t, got, expected.status, nil)
			}
			if n := len(sink.Case(name)); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestCertificates(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	hour := time.Hour
	tests := map[string]struct {
		server *tls.Config
		fault  *egress.Fault
	}{
		"good":        {ca.server(t, nil), nil},
		"unknown CA":  {stranger.server(t, nil), unsent(egress.CodeCertificate)},
		"expired":     {ca.server(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-hour / 2) }), unsent(egress.CodeCertificate)},
		"not yet":     {ca.server(t, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(hour / 2) }), unsent(egress.CodeCertificate)},
		"other name":  {ca.server(t, func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = []string{"other.example"}, nil }), unsent(egress.CodeCertificate)},
		"name in CN":  {ca.server(t, func(c *x509.Certificate) { c.Subject.CommonName, c.DNSNames, c.IPAddresses = "127.0.0.1", nil, nil }), unsent(egress.CodeCertificate)},
		"client only": {ca.server(t, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), unsent(egress.CodeCertificate)},
		"TLS 1.1":     {limited(ca.server(t, nil), tls.VersionTLS11), unsent(egress.CodeTLS)},
		"TLS 1.2":     {limited(ca.server(t, nil), tls.VersionTLS12), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			sink := newSink(t, rawsink.Config{TLS: tt.server})
			got := newClient(egress.Config{RootCAs: ca.pool()}).Post(t.Context(), secureCall(sink.Port(), "/b/ok/x"))
			if tt.fault == nil {
				want(t, got, 200, nil)
				return
			}
			want(t, got, 0, tt.fault)
			if len(sink.Requests()) != 0 || sink.Conns() != 1 {
				t.Errorf("%d requests on %d connections", len(sink.Requests()), sink.Conns())
			}
		})
	}
}

// limited allows no newer version than max.
func limited(cfg *tls.Config, max uint16) *tls.Config {
	cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS10, max
	return cfg
}

// TestServerNameIsTheHostname, neither the address nor the Host header.
func TestServerNameIsTheHostname(t *testing.T) {
	ca := newAuthority(t)
	server := ca.server(t, nil)
	names := make(chan string, 1)
	server.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		names <- hello.ServerName
		return nil, nil
	}
	sink := newSink(t, rawsink.Config{TLS: server})
	call := secureCall(sink.Port(), "/b/ok/x")
	call.Hostname, call.Host = "localhost", "other.example"
	client := newClient(egress.Config{RootCAs: ca.pool(), Resolver: found("127.0.0.1")})
	want(t, client.Post(t.Context(), call), 200, nil)
	if name := <-names; name != "localhost" {
		t.Errorf("server name %q", name)
	}
}

// TestClockJudgesCertificates has the client live in another year.
func TestClockJudgesCertificates(t *testing.T) {
	ca := newAuthority(t)
	sink := newSink(t, rawsink.Config{TLS: ca.server(t, nil)})
	later := func() time.Time { return time.Now().AddDate(1, 0, 0) }
	client := newClient(egress.Config{RootCAs: ca.pool(), Now: later})
	want(t, client.Post(t.Context(), secureCall(sink.Port(), "/b/ok/x")), 0, unsent(egress.CodeCertificate))
}

func TestHandshakesThatEnd(t *testing.T) {
	tests := map[string]func(net.Conn){
		"plain answer": func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n"); drain(conn) },
		"garbage":      func(conn net.Conn) { _, _ = io.WriteString(conn, "\x16\x03\x03\x00\x05hello"); drain(conn) },
		"alert":        func(conn net.Conn) { _, _ = io.WriteString(conn, "\x15\x03\x03\x00\x02\x02\x28"); drain(conn) },
		"close":        func(conn net.Conn) { _, _ = conn.Read(make([]byte, 4096)) },
		"reset":        func(conn net.Conn) { _, _ = conn.Read(make([]byte, 4096)); reset(conn) },
	}
	for name, handle := range tests {
		t.Run(name, func(t *testing.T) {
			r := serve(t, handle)
			got := newClient(egress.Config{}).Post(t.Context(), secureCall(r.port(), "/"))
			want(t, got, 0, unsent(egress.CodeTLS))
			if r.conns.Load() != 1 {
				t.Errorf("%d connections", r.conns.Load())
			}
		})
	}
}

// drain reads until the client is gone, so that closing is no reset.
func drain(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

func TestPlainTextToATLSPort(t *testing.T) {
	sink := newSink(t, rawsink.Config{TLS: newAuthority(t).server(t, nil)})
	want(t, newClient(egress.Config{}).Post(t.Context(), callTo(sink.Port(), "/")), 0, sent(egress.CodeReceive))
}

// A body without an announced end is complete where the stream ends, also one
// that ends without TLS's goodbye (close_notify), as with curl 7.88 on OpenSSL
// 3, which is what Phorge has: cut off is only what had announced more.
func TestAStreamThatEndsWithoutAGoodbye(t *testing.T) {
	ca := newAuthority(t)
	for name, tt := range map[string]struct {
		answer       string
		status, code int
	}{
		"to the end":         {"HTTP/1.0 200 OK\r\n\r\nabc", 200, 0},
		"to the end, empty":  {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", 200, 0},
		"by length":          {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, 0},
		"by length, cut":     {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 0, egress.CodeTruncated},
		"in chunks, cut":     {chunkedHead + "3\r\nabc\r\n", 0, egress.CodeTruncated},
		"no answer whatever": {"", 0, egress.CodeNoAnswer},
	} {
		for _, goodbye := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, goodbye %t", name, goodbye), func(t *testing.T) {
				security := ca.server(t, nil)
				r := serve(t, func(tcp net.Conn) {
					conn := tls.Server(tcp, security)
					readAll(conn)
					_, _ = io.WriteString(conn, tt.answer)
					if goodbye {
						_ = conn.CloseWrite()
					}
				})
				got := newClient(egress.Config{RootCAs: ca.pool()}).Post(t.Context(), secureCall(r.port(), "/"))
				if tt.code != 0 {
					want(t, got, 0, sent(tt.code))
				} else {
					want(t, got, tt.status, nil)
				}
			})
		}
	}
}
