// Package egress is the only part of Waybill that opens outbound connections.
//
// It makes one attempt at one POST: one lookup, one address that was checked
// and is the one dialled, one fresh connection, one request on the wire at
// most, one answer read. What came of it is an Outcome: a status, or a Fault
// that carries the number libcurl uses for the same thing.
//
// It refuses: addresses outside the policy, proxies from the environment,
// redirects, compressed answers, names that end in a number (other resolvers
// read those as addresses), and header fields that would change how the
// request is framed or repeated. It never repeats a request, and none of its
// errors holds a URL, a host, an address, a credential or text that a receiver
// sent.
//
// # Why not http.Transport
//
// The request is written here and the answer parsed by http.ReadResponse on a
// crypto/tls or TCP connection; three things a Transport cannot do made that
// necessary. A request target such as `//x/{y}` cannot be written: URL.Opaque
// turns a leading `//` into an absolute URI, and URL.Path escapes the braces.
// When a write fails, the Transport drops an answer that arrived early, or
// keeps it, depending on which goroutine is first. And the faults a webhook
// owner needs told apart (refused, reset, closed, cut off, not HTTP) can only
// be guessed from a Transport's error text, which contains the receiver's
// bytes. Connections are not reused, so a Transport's pool buys nothing: an
// idle connection that dies under a POST leaves an outcome nobody can know.
//
// Who may import it: activities' wiring (worker, cmd) and tests. It imports
// the standard library and golang.org/x/net/http/httpguts only.
package egress
