package scenario

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"waybill/internal/egress/rawsink"
)

// Receiver is a receiver of webhooks that keeps raw bytes; see rawsink for what
// it can do.
type Receiver struct{ *rawsink.Sink }

// NewReceiver listens on a free port until the test ends. A nil security means
// plain HTTP. now stamps what comes in.
func NewReceiver(t testing.TB, security *tls.Config, now func() time.Time) *Receiver {
	t.Helper()
	return listen(t, rawsink.Config{TLS: security, Now: now})
}

// ReceiverAt listens on a given address, for recorded cases that name one.
func ReceiverAt(t testing.TB, address string, now func() time.Time) *Receiver {
	t.Helper()
	return listen(t, rawsink.Config{Addr: address, Now: now})
}

func listen(t testing.TB, cfg rawsink.Config) *Receiver {
	t.Helper()
	sink, err := rawsink.Start(cfg)
	if err != nil {
		t.Fatalf("scenario: no receiver (is the address taken by another program or test run?): %v", err)
	}
	t.Cleanup(sink.Close)
	return &Receiver{sink}
}

// Await waits until at least n requests for a case are complete.
func (r *Receiver) Await(t testing.TB, name string, n int, within time.Duration) []rawsink.Request {
	t.Helper()
	Until(t, within, func() string { return fmt.Sprintf("%d of %d requests for %s", len(r.Case(name)), n, name) },
		func() bool { return len(r.Case(name)) >= n })
	return r.Case(name)
}

// Wire is a request taken apart by hand: net/http would repair the very bytes
// under test.
type Wire struct {
	Line   string
	Header map[string]string // names as written; repeated ones joined by "; "
	Names  []string          // header names in order
	Body   string
}

// signatureHeader is Phorge's name for it.
const signatureHeader = "X-Phabricator-Webhook-Signature"

// ParseWire takes a raw request apart.
func ParseWire(raw []byte) Wire {
	head, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	lines := strings.Split(string(head), "\r\n")
	w := Wire{Line: lines[0], Header: map[string]string{}, Body: string(body)}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		if before, twice := w.Header[name]; twice {
			value = before + "; " + value
		}
		w.Header[name] = value
		w.Names = append(w.Names, name)
	}
	return w
}

// Signature is the value of Phorge's signature header.
func (w Wire) Signature() string { return w.Header[signatureHeader] }

// Essence is what two requests must have in common to be the same call, byte
// for byte: everything but how the client introduces itself.
func (w Wire) Essence() string {
	return strings.Join([]string{
		w.Line, "Host: " + w.Header["Host"], "Content-Type: " + w.Header["Content-Type"],
		"Signature: " + w.Signature(), "Authorization: " + w.Header["Authorization"], "", w.Body,
	}, "\n")
}
