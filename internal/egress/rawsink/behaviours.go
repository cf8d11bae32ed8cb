package rawsink

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// patience is how long a silent behaviour keeps a connection, in real time:
// longer than anybody's delivery timeout.
const patience = 40 * time.Second

// field is one header field of an answer.
type field struct{ name, value string }

// Behaviours are the names of all behaviours, one redirect and one status
// standing for each of theirs. A name that is unknown answers like "ok".
func Behaviours() []string {
	names := slices.Collect(maps.Keys(fixed))
	names = append(names, "status200", "status204", "status401", "status503",
		"gzip", "gzipbad", "gzipempty", "gzipupper", "deflate", "gzipbad500",
		"hang", "hanghdr", "trickle", "slow14", "reset", "huge", "infinite",
		"bighdr", "manyhdr", "second_close", "ok_then_close", "early_response")
	for _, kind := range []string{"", "to500", "abs", "lo", "host", "user", "loop", "twice", "ftp",
		"file", "noloc", "empty", "bad", "dead", "hang", "nodns", "frag", "early"} {
		names = append(names, "redir302"+kind)
	}
	slices.Sort(names)
	return names
}

// act answers the request of v; false ends the connection.
func (v *visit) act() bool {
	b := v.req.Behaviour
	if a, ok := fixed[b]; ok {
		return v.send(a.text) && a.keep
	}
	if code, ok := numbered(b, "status"); ok {
		return v.status(code)
	}
	if strings.HasPrefix(b, "redir") && len(b) > len("redir") && digits(b[len("redir"):len("redir")+1]) {
		return v.redirect(strings.TrimPrefix(b, "redir"))
	}
	if text, ok := encoded(b); ok {
		return v.send(text)
	}
	switch b {
	case "hang":
		return v.linger()
	case "hanghdr":
		return v.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc") && v.linger()
	case "trickle":
		return v.trickle()
	case "slow14":
		return v.pause(14*time.Second) && v.send(answerOK)
	case "reset":
		_ = v.tcp.SetLinger(0)
		return false
	case "huge":
		return v.huge()
	case "infinite":
		return v.infinite()
	case "bighdr":
		return v.send(compose("200", "ok\n", field{"X-Big", strings.Repeat("a", 120<<10)}))
	case "manyhdr":
		return v.send(manyFields())
	case "second_close":
		return v.nth == 1 && v.send(answerOK)
	case "ok_then_close":
		return v.send(answerOK) && v.pause(200*time.Millisecond) && false
	case "early_response":
		return v.send(compose("500", "ok\n")) && false
	}
	return v.send(answerOK)
}

// send writes parts in one go; false when the client is gone.
func (v *visit) send(parts ...string) bool {
	_, err := v.conn.Write([]byte(strings.Join(parts, "")))
	return err == nil
}

// pause lets time pass; false when the sink was closed meanwhile.
func (v *visit) pause(d time.Duration) bool {
	v.sink.cfg.Wait(v.sink.ctx, d)
	return v.sink.ctx.Err() == nil
}

// linger says nothing until the client closes, patience is over or the sink is
// closed. It returns false, for the end of the connection.
func (v *visit) linger() bool {
	ctx, stop := context.WithCancel(v.sink.ctx)
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		v.sink.cfg.Wait(ctx, patience)
		_ = v.tcp.SetReadDeadline(time.Unix(1, 0))
	}()
	_, _ = v.conn.Read(make([]byte, 10))
	stop()
	<-waited
	return false
}

// status answers with a status. Some have the fields that go with them.
func (v *visit) status(code string) bool {
	fields := []field{{"Content-Type", "text/plain"}}
	switch code {
	case "204", "304":
		return v.send("HTTP/1.1 " + code + " X\r\n\r\n")
	case "429", "503":
		fields = append(fields, field{"Retry-After", "120"})
	case "401":
		fields = append(fields, field{"WWW-Authenticate", `Basic realm="x"`})
	}
	return v.send(compose(code, "ok\n", fields...))
}

// redirect answers with a status and a Location; rest is the status followed
// by the kind of Location.
func (v *visit) redirect(rest string) bool {
	kind := strings.TrimLeft(rest, "0123456789")
	code := strings.TrimSuffix(rest, kind)
	name, base := v.req.Case, fmt.Sprintf("http://127.0.0.1:%d", v.sink.Port())
	locations := map[string]string{
		"": "/b/status200/" + name, "to500": "/b/status500/" + name,
		"abs":  base + "/b/status200/" + name,
		"lo":   base + "/b/status200/" + name,
		"host": fmt.Sprintf("http://localhost:%d/b/status200/%s", v.sink.Port(), name),
		"user": fmt.Sprintf("http://u:p@127.0.0.1:%d/b/status200/%s", v.sink.Port(), name),
		"loop": "/b/" + v.req.Behaviour + "/" + name, "twice": "/b/redir" + code + "/" + name,
		"ftp": "ftp://127.0.0.1/x", "file": "file:///etc/passwd",
		"empty": "", "bad": "http://[", "dead": "http://127.0.0.1:1/x",
		"hang": "/b/hang/" + name, "nodns": "http://nosuch.invalid/x",
		"frag": "/b/status200/" + name + "#frag", "early": "/b/early103/" + name,
	}
	const body = "redirect body\r\n\r\nsecond para\r\n\r\n"
	if kind == "noloc" {
		return v.send(compose(code, body))
	}
	location, known := locations[kind]
	return known && v.send(compose(code, body, field{"Location", location}))
}

// encoded returns the answers that claim a compression, some of them falsely.
func encoded(behaviour string) (text string, ok bool) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write([]byte("hello"))
	_ = w.Close()
	kinds := map[string]struct{ code, encoding, body string }{
		"gzip":       {"200", "gzip", zipped.String()},
		"gzipbad":    {"200", "gzip", "not gzip"},
		"gzipempty":  {"200", "gzip", ""},
		"gzipupper":  {"200", "GZIP", "not gzip"},
		"deflate":    {"200", "deflate", "not deflate"},
		"gzipbad500": {"500", "gzip", "not gzip"},
	}
	kind, ok := kinds[behaviour]
	if !ok {
		return "", false
	}
	return compose(kind.code, kind.body, field{"Content-Encoding", kind.encoding}), true
}

// trickle sends a body of 1,000 bytes, one a second, 40 of them.
func (v *visit) trickle() bool {
	if !v.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n") {
		return false
	}
	for range 40 {
		if !v.send("x") || !v.pause(time.Second) {
			return false
		}
	}
	return false
}

// huge sends a body of 64 MiB.
func (v *visit) huge() bool {
	const size, block = 64 << 20, 64 << 10
	if !v.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)) {
		return false
	}
	text := []byte(strings.Repeat("y", block))
	for range size / block {
		if _, err := v.conn.Write(text); err != nil {
			return false
		}
	}
	return true
}

// infinite sends chunks of 4 KiB every 50 ms for 40 s.
func (v *visit) infinite() bool {
	const every = 50 * time.Millisecond
	chunk := "1000\r\n" + strings.Repeat("z", 0x1000) + "\r\n"
	if !v.send(chunked) {
		return false
	}
	for range patience / every {
		if !v.send(chunk) || !v.pause(every) {
			return false
		}
	}
	return false
}

// manyFields is an answer with 400 fields of 1,000 bytes.
func manyFields() string {
	fields := make([]field, 400)
	for i := range fields {
		fields[i] = field{fmt.Sprintf("X-%d", i), strings.Repeat("b", 1000)}
	}
	return compose("200", "ok\n", fields...)
}

// compose writes an answer with the reason X.
func compose(code, body string, fields ...field) string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 " + code + " X\r\n")
	for _, f := range fields {
		b.WriteString(f.name + ": " + f.value + "\r\n")
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return b.String()
}

// numbered returns what follows prefix when that is a number.
func numbered(s, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(s, prefix)
	return rest, ok && digits(rest)
}

// digits says whether s consists of digits and has one at least.
func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
