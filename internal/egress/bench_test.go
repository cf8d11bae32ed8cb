package egress_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"waybill/internal/egress"
	"waybill/internal/egress/rawsink"
)

// benchBody is as long as a document with a handful of transactions.
var benchBody = bytes.Repeat([]byte("x"), 600)

func BenchmarkPost(b *testing.B) {
	sink := newSink(b, rawsink.Config{})
	client := newClient(egress.Config{})
	call := callTo(sink.Port(), "/b/fast/fast")
	call.Body = benchBody
	b.ReportAllocs()
	for b.Loop() {
		if got := client.Post(b.Context(), call); got.Status != 200 {
			b.Fatal(got.Fault)
		}
	}
}

// BenchmarkTransport is the yardstick: http.Transport, a connection per request.
func BenchmarkTransport(b *testing.B) {
	sink := newSink(b, rawsink.Config{})
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	b.ReportAllocs()
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, sink.URL("fast", "fast"), bytes.NewReader(benchBody))
		if err != nil {
			b.Fatal(err)
		}
		answer, err := transport.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}
