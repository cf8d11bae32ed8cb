package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"
)

// writeKeyFiles puts fresh certificates and keys below testdata/ of a new
// working directory. Fresh, because a private key in a repository is found by
// every scanner, and one day somebody uses it.
func writeKeyFiles(t *testing.T) {
	t.Helper()
	inDirectory(t)
	certificate, key := pair(t)
	_, foreign := pair(t)
	encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	for name, content := range map[string]string{
		"ca.pem": certificate, "client.pem": certificate, "client.key": key, "foreign.key": foreign,
		"kek":           "# wraps\nkek-2026 " + encoded + "\n\nkek-2025 " + encoded + "\n",
		"text":          "no PEM in here\n",
		"empty":         "",
		"kek-short":     "kek-2026 " + base64.StdEncoding.EncodeToString([]byte("hunter2")) + "\n",
		"kek-alone":     "hunter2hunter2\n",
		"kek-id":        "kek:2026 " + encoded + "\n",
		"kek-twice":     "a " + encoded + "\na " + encoded + "\n",
		"kek-comments":  "# nothing\n\n",
		"kek-long-line": strings.Repeat("x", 1<<17),
		"large":         strings.Repeat("-", largestFile+1),
	} {
		write(t, name, content)
	}
	if err := os.Mkdir("testdata/directory", 0o700); err != nil {
		t.Fatal(err)
	}
}

// pair makes a self-signed certificate and its key, both PEM.
func pair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

func TestTemporalTLS(t *testing.T) {
	writeKeyFiles(t)
	clientPair := env{
		"WAYBILL_TEMPORAL_TLS_CERT_FILE": "testdata/client.pem",
		"WAYBILL_TEMPORAL_TLS_KEY_FILE":  "testdata/client.key",
	}
	for _, test := range []struct {
		name         string
		env          env
		on, roots    bool
		certificates int
		expectedName string
	}{
		{name: "nothing set", env: nil},
		{name: "CA", env: env{"WAYBILL_TEMPORAL_TLS_CA_FILE": "testdata/ca.pem"}, on: true, roots: true},
		{name: "pair", env: clientPair, on: true, certificates: 1},
		{name: "name", env: env{"WAYBILL_TEMPORAL_TLS_SERVER_NAME": "t.example"}, on: true, expectedName: "t.example"},
		{name: "API key", env: env{"WAYBILL_TEMPORAL_API_KEY": "key"}, on: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			settings, err := mustLoad(t, test.env).Temporal.TLS()
			if err != nil || (settings != nil) != test.on {
				t.Fatalf("TLS() = %v, %v", settings, err)
			}
			if settings == nil {
				return
			}
			if (settings.RootCAs != nil) != test.roots || len(settings.Certificates) != test.certificates ||
				settings.ServerName != test.expectedName || settings.InsecureSkipVerify {
				t.Errorf("TLS() = %+v", settings)
			}
		})
	}
}

// TestFilesThatVanish covers the time between Load and use; no message may
// name a path.
func TestFilesThatVanish(t *testing.T) {
	writeKeyFiles(t)
	c := mustLoad(t, env{
		"WAYBILL_HERALD_CA_FILE":         "testdata/ca.pem",
		"WAYBILL_TEMPORAL_TLS_CERT_FILE": "testdata/client.pem",
		"WAYBILL_TEMPORAL_TLS_KEY_FILE":  "testdata/client.key",
	})
	if pool, err := c.Herald.RootCAs(); err != nil || pool == nil {
		t.Fatalf("RootCAs() = %v, %v", pool, err)
	}
	if err := os.RemoveAll("testdata"); err != nil {
		t.Fatal(err)
	}
	_, rootsErr := c.Herald.RootCAs()
	_, pairErr := c.Temporal.TLS()
	c.Temporal.CAFile = "testdata/ca.pem"
	_, bundleErr := c.Temporal.TLS()
	for _, err := range []error{rootsErr, pairErr, bundleErr} {
		if err == nil || strings.Contains(err.Error(), "testdata") {
			t.Errorf("error = %v", err)
		}
	}
	if pool, err := (Herald{}).RootCAs(); pool != nil || err != nil {
		t.Errorf("the system's roots are %v, %v", pool, err)
	}
}

func TestUnreadableFiles(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	writeKeyFiles(t)
	if err := os.Chmod("testdata/ca.pem", 0); err != nil {
		t.Fatal(err)
	}
	if _, wrong := content("testdata/ca.pem"); wrong != "the file cannot be read" {
		t.Errorf("wrong = %q", wrong)
	}
	if err := os.Chmod("testdata", 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod("testdata", 0o700) })
	if _, wrong := content("testdata/ca.pem"); !strings.Contains(wrong, "must not be entered") {
		t.Errorf("wrong = %q", wrong)
	}
}
