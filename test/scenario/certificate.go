package scenario

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// validAround is how far certificates reach before and after the time they
// are made at: longer than any test.
const validAround = time.Hour

// Authority is a certificate authority that a test invents.
type Authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	now  time.Time
}

// NewAuthority makes one.
func NewAuthority(t testing.TB, now time.Time) *Authority {
	t.Helper()
	a := &Authority{now: now}
	template := a.template(1, "waybill acceptance tests")
	template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	a.key, a.cert = newKey(t), template
	a.cert = a.sign(t, template, &a.key.PublicKey)
	return a
}

// File writes the authority's certificate as PEM, for WAYBILL_HERALD_CA_FILE.
func (a *Authority) File(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	if err := os.WriteFile(path, block, 0o600); err != nil {
		t.Fatalf("scenario: %v", err)
	}
	return path
}

// Server is the configuration of a server on loopback that it vouches for.
func (a *Authority) Server(t testing.TB) *tls.Config {
	t.Helper()
	template := a.template(2, "receiver")
	template.DNSNames, template.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	key := newKey(t)
	cert := a.sign(t, template, &key.PublicKey)
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
	}
}

func (a *Authority) template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
		NotBefore: a.now.Add(-validAround), NotAfter: a.now.Add(validAround),
	}
}

func (a *Authority) sign(t testing.TB, template *x509.Certificate, public *ecdsa.PublicKey) *x509.Certificate {
	t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, public, a.key)
	if err != nil {
		t.Fatalf("scenario: %v", err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatalf("scenario: %v", err)
	}
	return cert
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("scenario: %v", err)
	}
	return key
}
