package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/go-chi/chi/v5/middleware"
	"go.uber.org/zap"
)

// guardedHeaders go on every answer, errors included. The interface is not
// meant for browsers: nothing may be framed, sniffed, cached or run.
func guardedHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, header := range guards {
			w.Header().Set(header.name, header.value)
		}
		next.ServeHTTP(w, r)
	})
}

var guards = []struct{ name, value string }{
	{"Cache-Control", "no-store"},
	{"X-Content-Type-Options", "nosniff"},
	{"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
	{"X-Frame-Options", "DENY"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
}

// largestBody is what a request may send along before its connection is cut.
// No handler reads a body; a few bytes are forgiven because some clients send
// an empty JSON document with everything.
const largestBody = 1 << 10

// bodyIgnored closes the connection after a request that announces a body:
// otherwise net/http would read up to 256 KiB of it to find the next request.
func bodyIgnored(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close")
			r.Body = http.MaxBytesReader(w, r.Body, largestBody)
		}
		next.ServeHTTP(w, r)
	})
}

// shielded turns a panic into the fixed 500, and logs its type and stack. The
// panic's own text stays out of both: it may quote anything.
func (s *server) shielded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause == http.ErrAbortHandler { //nolint:errorlint // a panic's value, compared as net/http does
				panic(cause)
			}
			s.logger.Error("a handler panicked",
				zap.String("panic_type", fmt.Sprintf("%T", cause)),
				zap.ByteString("stack", debug.Stack()))
			if seen.Status() != 0 {
				panic(http.ErrAbortHandler) // half an answer must not look whole
			}
			failInternal.write(w)
		}()
		next.ServeHTTP(seen, r)
	})
}

// authorized lets a request pass that carries the token. It comes before
// everything that could tell a stranger which paths exist.
func (s *server) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		challenge := s.challenge(r.Header.Values("Authorization"))
		if challenge != "" {
			w.Header().Set("WWW-Authenticate", challenge)
			failUnauthorized.write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// The challenges of RFC 6750: without a code when no token was offered.
const (
	challengeMissing = `Bearer realm="waybill"`
	challengeWrong   = `Bearer realm="waybill", error="invalid_token"`
)

// challenge is what to answer to these credentials, or nothing when they are
// right. Several Authorization headers are refused: a proxy in between might
// have judged another one than this code would. The digests are compared, in
// constant time, so that neither content nor length of the token shows.
func (s *server) challenge(credentials []string) string {
	if s.token == nil {
		return ""
	}
	if len(credentials) == 0 {
		return challengeMissing
	}
	scheme, token, found := strings.Cut(credentials[0], " ")
	if len(credentials) > 1 || !found || !strings.EqualFold(scheme, "Bearer") {
		return challengeWrong
	}
	digest := sha256.Sum256([]byte(strings.TrimLeft(token, " ")))
	if subtle.ConstantTimeCompare(digest[:], s.token[:]) != 1 {
		return challengeWrong
	}
	return ""
}
