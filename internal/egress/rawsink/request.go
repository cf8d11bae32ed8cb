package rawsink

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
)

// visit is one connection being served.
type visit struct {
	sink *Sink
	tcp  *net.TCPConn // the socket, for a reset
	conn net.Conn     // what is talked on: tcp, or TLS on it
	id   int
	rest []byte // read beyond the last request
	buf  []byte // what the socket is read into
	nth  int    // requests so far
	req  Request
}

// serve answers requests on one connection until a behaviour or the client
// ends it.
func (s *Sink) serve(conn net.Conn, id int) {
	defer s.leave(conn)
	v := &visit{sink: s, tcp: conn.(*net.TCPConn), conn: conn, id: id}
	if s.cfg.TLS != nil && !v.secure() {
		return
	}
	for {
		raw, err := v.read()
		if err != nil {
			if len(v.rest) > 0 {
				s.record(func() { s.partials = append(s.partials, Partial{Conn: id, Raw: v.rest}) })
			}
			return
		}
		v.note(raw)
		if !v.act() {
			return
		}
	}
}

// secure makes the connection a TLS one. A client that does not speak TLS is
// reset, as OpenSSL's servers do it: they close with its bytes unread.
func (v *visit) secure() bool {
	stream := tls.Server(v.tcp, v.sink.cfg.TLS)
	err := stream.HandshakeContext(v.sink.ctx)
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) {
		_ = v.tcp.SetLinger(0)
	}
	v.conn = stream
	return err == nil
}

// read returns the bytes of the next request: the head, and as much body as
// its Content-Length announces or the client sends before it closes.
func (v *visit) read() ([]byte, error) {
	end := []byte("\r\n\r\n")
	for !bytes.Contains(v.rest, end) {
		if err := v.more(); err != nil {
			return nil, err
		}
	}
	head := bytes.Index(v.rest, end) + len(end)
	size := head + contentLength(string(v.rest[:head]))
	for len(v.rest) < size {
		if err := v.more(); err != nil {
			size = len(v.rest)
		}
	}
	raw := v.rest[:size:size]
	v.rest = v.rest[size:]
	return raw, nil
}

// more reads what is there.
func (v *visit) more() error {
	if v.buf == nil {
		v.buf = make([]byte, 16<<10)
	}
	n, err := v.conn.Read(v.buf)
	v.rest = append(v.rest, v.buf[:n]...)
	if n > 0 {
		return nil
	}
	return err
}

// note records a complete request.
func (v *visit) note(raw []byte) {
	v.nth++
	line, _, _ := strings.Cut(string(raw), "\r\n")
	v.req = Request{Conn: v.id, Nth: v.nth, Line: line, Raw: raw}
	v.req.Behaviour, v.req.Case = pathOf(line)
	s := v.sink
	if s.cfg.Now != nil {
		v.req.At = s.cfg.Now()
	}
	kept := v.req
	if kept.Case == "fast" {
		kept.Raw = nil // for load tests, which only count
	}
	s.record(func() { s.requests = append(s.requests, kept) })
}

// pathOf returns the behaviour and the case that a request line asks for.
func pathOf(line string) (behaviour, name string) {
	behaviour, name = "status200", "nocase"
	fields := strings.Split(line, " ")
	if len(fields) < 2 {
		return behaviour, name
	}
	path, _, _ := strings.Cut(fields[1], "?")
	path, _, _ = strings.Cut(path, "#")
	if _, rest, absolute := strings.Cut(path, "://"); absolute && strings.HasPrefix(path, "http") {
		_, rest, _ = strings.Cut(rest, "/")
		path = "/" + rest
	}
	parts := strings.Split(path, "/")
	if len(parts) > 2 && parts[1] == "b" {
		behaviour = parts[2]
	}
	if len(parts) > 3 && parts[1] == "b" {
		name = parts[3]
	}
	return behaviour, name
}

// contentLength returns the announced length of the body; 0 when none is.
func contentLength(head string) int {
	for line := range strings.Lines(head) {
		name, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(name, "content-length") {
			n, _ := strconv.Atoi(strings.TrimSpace(value))
			return max(n, 0)
		}
	}
	return 0
}
