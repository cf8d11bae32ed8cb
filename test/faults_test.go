package acceptance

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"waybill/test/scenario"
)

// fault is one way in which a receiver gives no answer, or a strange one.
type fault struct {
	uri string
	// recorded names the case of a real Phorge that shows the same, if any.
	recorded string
	want     string // the error in the row
	status   string
}

// Whatever goes wrong below HTTP ends in the row as Phorge would show it:
// curl's number, or the hook's own fault. These are the recorded cases that
// need more than the plain receiver.
func TestTransportFaultsStandInTheRow(t *testing.T) {
	t.Parallel()
	trusted, stranger := scenario.NewAuthority(t, time.Now()), scenario.NewAuthority(t, time.Now())
	plain := scenario.NewReceiver(t, nil, time.Now)
	secure := scenario.NewReceiver(t, trusted.Server(t), time.Now)
	unknown := scenario.NewReceiver(t, stranger.Server(t), time.Now)
	site := scenario.NewSite(t, &program)
	object := task(t, site)
	serve := site.Serve(t, map[string]string{
		"WAYBILL_HERALD_CA_FILE": trusted.File(t), "WAYBILL_HERALD_DELIVERY_TIMEOUT": "2s",
	})
	faults := map[string]fault{
		"refused": {"http://127.0.0.1:1/x", "net-refused-never", httpError("7"), "failed"},
		"closed on arrival": {"http://" + misbehaving(t, awaitBytes) + "/x",
			"", httpError("52"), "failed"},
		// Recorded as 7; the recorded receiver was not up. A reset is 56.
		"reset on arrival": {"http://" + misbehaving(t, resetAfterBytes) + "/x", "", httpError("56"), "failed"},
		"connect timeout":  {"http://" + fullBacklog(t) + "/x", "net-connect-timeout-never", timedOut, "failed"},
		"silence":          {plain.URL("hang", "silence"), "", timedOut, "failed"},
		"plain to a TLS port": {strings.Replace(secure.URL("status200", "x"), "https", "http", 1),
			"plain-to-tls-port", httpError("56"), "failed"},
		"TLS to a plain port": {strings.Replace(plain.URL("status200", "x"), "http", "https", 1),
			"tls-to-plain-port", timedOut, "failed"},
		"TLS answered in plain": {"https://" + misbehaving(t, speakPlainly) + "/x", "tls-to-plain-responder", httpError("35"), "failed"},
		"TLS closed":            {"https://" + misbehaving(t, hangUp) + "/x", "tls-accept-close", httpError("35"), "failed"},
		"TLS silence":           {"https://" + misbehaving(t, silence) + "/x", "tls-handshake-hang", timedOut, "failed"},
		"unknown CA":            {unknown.URL("status200", "x"), "tls-unknownca-never", httpError("60"), "failed"},
		"trusted CA":            {secure.URL("status200", "trusted"), "", httpError("200"), "sent"},
		// [differs]: never followed, so what PHP met behind it is not met.
		"redirect from TLS": {secure.URL("redir302lo", "down"), "", httpError("302"), "failed"},
		"no such name":      {"http://nothing-here.invalid/x", "", hookError("uri"), "failed"},
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if f.recorded != "" && recordedEnd(recordedCase(t, f.recorded).After[0]) != f.want {
				t.Fatalf("recorded is %s", recordedCase(t, f.recorded).After[0].Properties)
			}
			r := queue(t, site, hook(t, site, f.uri), object, never)
			scenario.Until(t, patience, "the row ends", func() bool { return row(t, site, r.PHID).Status != "queued" })
			if got := row(t, site, r.PHID); got.Status != f.status || ended(got) != f.want {
				t.Errorf("row is %s/%s with %s, want %s with %s", got.Status, got.LastResult, ended(got), f.status, f.want)
			}
			if n := len(serve.Log.Find("attempt", r.PHID)); n > 1 {
				t.Errorf("%d attempts of a row that is never retried", n)
			}
		})
	}
}

// recordedEnd is ended for a recorded row.
func recordedEnd(r recordedRow) string {
	_, errors := splitErrors(r.Properties)
	return errors
}

// misbehaving is the address of a server that does one thing to each connection.
func misbehaving(t *testing.T, do func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { do(conn); conn.Close() }()
		}
	}()
	return listener.Addr().String()
}

// awaitBytes reads what the client says first.
func awaitBytes(c net.Conn) { _, _ = c.Read(make([]byte, 64<<10)) }

// silence says nothing until the client has gone.
func silence(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// hangUp ends the connection at once.
func hangUp(net.Conn) {}

// resetAfterBytes ends the connection with a reset, once the request is there:
// earlier, the client's own write could fail first.
func resetAfterBytes(c net.Conn) {
	awaitBytes(c)
	_ = c.(*net.TCPConn).SetLinger(0)
}

// speakPlainly answers anything with words that are not TLS.
func speakPlainly(c net.Conn) {
	_, _ = c.Write([]byte("HTTP/1.1 400 no TLS here\r\nContent-Length: 0\r\n\r\n"))
	awaitBytes(c)
}
