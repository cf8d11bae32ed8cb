package config

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// largestFile bounds what is read from a named file. A bundle of every public
// root is about 250 KiB; a device file or a log would never end.
const largestFile = 4 << 20

// certificates reads the path of a PEM bundle with at least one certificate.
func certificates(at func(*Config) *string) kind {
	return path(at, func(_ *Config, content []byte) string {
		if !x509.NewCertPool().AppendCertsFromPEM(content) {
			return "the file holds no PEM certificate"
		}
		return ""
	})
}

// anyFile reads the path of a file whose content is judged elsewhere.
func anyFile(at func(*Config) *string) kind {
	return path(at, func(*Config, []byte) string { return "" })
}

// keyFile reads WAYBILL_KEK_FILE and the keys in it.
func keyFile() kind {
	return path(func(c *Config) *string { return &c.Keys.File }, func(c *Config, content []byte) string {
		var wrong string
		c.Keys.List, wrong = parseKeys(content)
		return wrong
	})
}

// path reads the name of a file, which must exist and be readable now: a
// typo should stop the start, not the first delivery. The name itself is never
// repeated, because the usual mistake is to put the key where its path belongs.
func path(at func(*Config) *string, judge func(*Config, []byte) string) kind {
	return kind{
		read: func(c *Config, value string) []complaint {
			content, wrong := content(value)
			if wrong == "" {
				wrong = judge(c, content)
			}
			if wrong != "" {
				return complain(wrong)
			}
			*at(c) = value
			return nil
		},
		show: func(c *Config) string { return *at(c) },
	}
}

// content reads a regular file, or says in our words why it cannot. The
// operating system's message would repeat the path.
func content(path string) ([]byte, string) {
	if strings.Contains(path, "-----BEGIN") {
		return nil, "the value is the content of a file, not its path"
	}
	info, err := os.Stat(path)
	switch {
	case os.IsPermission(err):
		return nil, "the file lies in a directory that must not be entered"
	case err != nil:
		return nil, "the file does not exist"
	case !info.Mode().IsRegular():
		return nil, "the path names something that is not a file"
	case info.Size() > largestFile:
		return nil, "the file is larger than 4 MiB"
	}
	read, err := os.ReadFile(path)
	if err != nil {
		return nil, "the file cannot be read"
	}
	return read, ""
}

// kekID keeps key ids printable and free of separators: they are stored beside
// every wrapped key and appear in logs.
var kekID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// kekLength is the key size of AES-256.
const kekLength = 32

// parseKeys reads lines of `kek_id base64(32 bytes)`; empty lines and lines
// that begin with # are skipped. Faults name the line, never its content.
func parseKeys(content []byte) ([]KEK, string) {
	var keys []KEK
	seen := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, wrong := parseKey(line)
		if wrong == "" && seen[key.ID] {
			wrong = "repeats a key id"
		}
		if wrong != "" {
			return nil, fmt.Sprintf("line %d of the file %s", number, wrong)
		}
		seen[key.ID] = true
		keys = append(keys, key)
	}
	if lines.Err() != nil {
		return nil, "the file has a line that is too long"
	}
	if keys == nil {
		return nil, "the file holds no key"
	}
	return keys, ""
}

func parseKey(line string) (KEK, string) {
	fields := strings.Fields(line)
	if len(fields) != 2 {
		return KEK{}, "is not a key id and a key"
	}
	if !kekID.MatchString(fields[0]) {
		return KEK{}, "has a key id with characters other than letters, digits, dot, dash and underscore"
	}
	raw, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil || len(raw) != kekLength {
		return KEK{}, "has a key that is not 32 bytes in base64"
	}
	return KEK{ID: fields[0], Key: NewSecret(string(raw))}, ""
}

// RootCAs are the roots that vouch for hooks' servers; nil means the
// system's. It reads the file again, so that a renewed bundle needs only a
// restart. The error names no path.
func (h Herald) RootCAs() (*x509.CertPool, error) { return roots(h.CAFile) }

// TLSEnabled says whether the connection to Temporal is encrypted: when any
// TLS variable is set, and always with an API key, which must not travel in
// the clear.
func (t Temporal) TLSEnabled() bool {
	return t.CAFile != "" || t.CertFile != "" || t.ServerName != "" || t.APIKey.Set()
}

// TLS builds the TLS settings for Temporal; nil without TLS.
func (t Temporal) TLS() (*tls.Config, error) {
	if !t.TLSEnabled() {
		return nil, nil
	}
	pool, err := roots(t.CAFile)
	if err != nil {
		return nil, err
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: t.ServerName}
	if t.CertFile == "" {
		return settings, nil
	}
	pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, errPair
	}
	settings.Certificates = []tls.Certificate{pair}
	return settings, nil
}

func roots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	read, wrong := content(file)
	pool := x509.NewCertPool()
	if wrong != "" || !pool.AppendCertsFromPEM(read) {
		return nil, errBundle
	}
	return pool, nil
}
