package egress_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"waybill/internal/egress"
)

func itoa(n int) string { return strconv.Itoa(n) }

// chunkedHead begins an answer in chunks.
const chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

// TestAnswers holds answers that the receiver of the recorded cases does not give.
func TestAnswers(t *testing.T) {
	tests := []struct {
		name, answer string
		rst          bool // reset instead of close after the answer
		status, code int
	}{
		{name: "1xx then the end", answer: "HTTP/1.1 100 Continue\r\n\r\n", status: 100},
		{name: "two 1xx then the end", answer: "HTTP/1.1 102 P\r\n\r\nHTTP/1.1 103 E\r\n\r\n", status: 103},
		{name: "1xx then a reset", answer: "HTTP/1.1 103 E\r\n\r\n", rst: true, code: egress.CodeReceive},
		{name: "1xx then garbage", answer: "HTTP/1.1 103 E\r\n\r\nwhat", code: egress.CodeNotHTTP},
		{name: "1xx without end", answer: strings.Repeat("HTTP/1.1 102 P\r\n\r\n", 70_000), code: egress.CodeReceive},
		{name: "head without end", answer: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 2<<20), code: egress.CodeReceive},
		{name: "line without end", answer: strings.Repeat("a", 2<<20), code: egress.CodeReceive},
		{name: "status 000", answer: "HTTP/1.1 000 X\r\n\r\n", code: egress.CodeNotHTTP},
		{name: "status +20", answer: "HTTP/1.1 +20 X\r\n\r\n", code: egress.CodeNotHTTP},
		{name: "status of four", answer: "HTTP/1.1 2000 X\r\n\r\n", code: egress.CodeNotHTTP},
		{name: "HTTP/2.0", answer: "HTTP/2.0 200 OK\r\n\r\n", status: 200},
		{name: "one byte", answer: "H", code: egress.CodeNotHTTP},
		{name: "blank line first", answer: "\r\nHTTP/1.1 200 OK\r\n\r\n", code: egress.CodeNotHTTP},
		{name: "bad length", answer: "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", code: egress.CodeNotHTTP},
		{name: "two lengths", answer: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", code: egress.CodeNotHTTP},
		{name: "unknown coding", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: zip\r\n\r\n", code: egress.CodeNotHTTP},
		{name: "field without colon", answer: "HTTP/1.1 200 OK\r\nwhat\r\n\r\n", code: egress.CodeNotHTTP},
		{name: "reset in the head", answer: "HTTP/1.1 200 OK\r\nX", rst: true, code: egress.CodeReceive},
		{name: "reset in the body", answer: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", rst: true, code: egress.CodeReceive},
		{name: "reset of a body to the end", answer: "HTTP/1.0 200 OK\r\n\r\nabc", rst: true, code: egress.CodeReceive},
		{name: "500 with a short body", answer: "HTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\nabc", code: egress.CodeTruncated},
		{name: "chunks complete", answer: chunkedHead + "3\r\nabc\r\n0\r\n\r\n", status: 200},
		{name: "chunks with trailer", answer: chunkedHead + "0\r\nX: y\r\n\r\n", status: 200},
		{name: "end in a chunk", answer: chunkedHead + "9\r\nabc", code: egress.CodeTruncated},
		{name: "end in a chunk's size", answer: chunkedHead + "9", code: egress.CodeTruncated},
		{name: "end before the trailer", answer: chunkedHead + "0\r\n", code: egress.CodeTruncated},
		{name: "garbled size", answer: chunkedHead + "-1\r\n", code: egress.CodeReceive},
		{name: "no line end after a chunk", answer: chunkedHead + "3\r\nabcdef\r\n0\r\n\r\n", code: egress.CodeReceive},
		{name: "body as long as the limit", answer: sized(1 << 20), status: 200},
		{name: "cut after the limit", answer: sized(2 << 20)[:1<<20+200], status: 200},
		{name: "204 with a body", answer: "HTTP/1.1 204 X\r\nContent-Length: 5\r\n\r\n", status: 204},
		{name: "TLS alert", answer: "\x15\x03\x01\x00\x02\x02\x46", code: egress.CodeReceive},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := serve(t, func(conn net.Conn) {
				readAll(conn)
				_, _ = io.WriteString(conn, tt.answer)
				if tt.rst {
					awaitAck(conn)
					reset(conn)
				}
			})
			got := newClient(egress.Config{}).Post(t.Context(), callTo(r.port(), "/"))
			if tt.code != 0 {
				want(t, got, 0, sent(tt.code))
			} else {
				want(t, got, tt.status, nil)
			}
			if r.conns.Load() != 1 {
				t.Errorf("%d connections", r.conns.Load())
			}
		})
	}
}

// sized is an answer with a body of n bytes.
func sized(n int) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", n, strings.Repeat("x", n))
}

// readAll reads the request of callTo, which has a body of three bytes.
func readAll(conn net.Conn) {
	readHead(conn)
	_, _ = io.ReadFull(conn, make([]byte, 3))
}

// TestEndlessBodyTakesNoMemory reads 1 MiB and keeps none of it.
func TestEndlessBodyTakesNoMemory(t *testing.T) {
	chunk := []byte("10000\r\n" + strings.Repeat("z", 0x10000) + "\r\n")
	r := serve(t, func(conn net.Conn) {
		readAll(conn)
		_, err := io.WriteString(conn, chunkedHead)
		for err == nil {
			_, err = conn.Write(chunk)
		}
	})
	client := newClient(egress.Config{})
	call := callTo(r.port(), "/")
	want(t, client.Post(t.Context(), call), 200, nil) // fills the pools
	var before, after runtime.MemStats
	const attempts = 20
	runtime.ReadMemStats(&before)
	for range attempts {
		want(t, client.Post(t.Context(), call), 200, nil)
	}
	runtime.ReadMemStats(&after)
	// Everything allocated, also what was freed meanwhile; the bodies alone
	// were 20 MiB.
	if used := after.TotalAlloc - before.TotalAlloc; used > attempts*128<<10 {
		t.Errorf("%d KiB per attempt", used>>10/attempts)
	}
}

// TestEarlyAnswer has a receiver that answers without reading the body, which
// is too large for the buffers between.
func TestEarlyAnswer(t *testing.T) {
	for _, rst := range []bool{false, true} {
		t.Run(fmt.Sprintf("reset=%v", rst), func(t *testing.T) {
			r := serve(t, func(conn net.Conn) {
				readHead(conn)
				_, _ = io.WriteString(conn, "HTTP/1.1 413 X\r\nContent-Length: 3\r\n\r\nno\n")
				if rst {
					awaitAck(conn)
					reset(conn)
					return
				}
				_, _ = conn.Read(make([]byte, 1)) // keep the rest unread
				awaitClose(conn)
			})
			call := callTo(r.port(), "/")
			call.Body = bytes.Repeat([]byte("b"), 12<<20)
			for range 5 {
				want(t, newClient(egress.Config{}).Post(t.Context(), call), 413, nil)
			}
		})
	}
}

// TestHangUpOnHalfARequest is one fault, whichever of write and read sees it.
func TestHangUpOnHalfARequest(t *testing.T) {
	r := serve(t, func(conn net.Conn) {
		readHead(conn)
		reset(conn)
	})
	call := callTo(r.port(), "/")
	call.Body = bytes.Repeat([]byte("b"), 12<<20)
	for range 10 {
		want(t, newClient(egress.Config{}).Post(t.Context(), call), 0, sent(egress.CodeSend))
	}
	if r.conns.Load() != 10 {
		t.Errorf("%d connections for 10 attempts", r.conns.Load())
	}
}
