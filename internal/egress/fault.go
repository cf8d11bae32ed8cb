package egress

import (
	"context"
	"errors"
	"net"
)

// The numbers of Fault.Code are libcurl's (curl/curl.h, CURLcode), because
// Phorge shows them.
const (
	// CodeNotHTTP: what came back is not an HTTP/1 answer (curl: unsupported protocol).
	CodeNotHTTP = 1
	// CodeMalformed: the call cannot be written as a request; nothing was sent.
	CodeMalformed = 3
	// CodeResolve: the name has no usable address.
	CodeResolve = 6
	// CodeConnect: no connection: refused, unreachable.
	CodeConnect = 7
	// CodeTruncated: the answer's body ended before its announced end.
	CodeTruncated = 18
	// CodeTimeout: the deadline passed, wherever the exchange was by then.
	CodeTimeout = 28
	// CodeTLS: the TLS handshake failed.
	CodeTLS = 35
	// CodeCancelled: the caller withdrew the attempt (curl: aborted by
	// callback). With BodySent the outcome is unknown.
	CodeCancelled = 42
	// CodeNoAnswer: the receiver closed the connection without an answer.
	CodeNoAnswer = 52
	// CodeSend: the request could not be sent completely and no answer came.
	CodeSend = 55
	// CodeReceive: the connection broke while an answer was read, or the
	// answer's head is too long, its chunks are garbled, or it is TLS.
	CodeReceive = 56
	// CodeCertificate: the receiver's certificate could not be verified.
	CodeCertificate = 60
)

// Fault says why an attempt has no status. It wraps no other error: the causes
// name hosts and addresses and quote receivers.
type Fault struct {
	// Code is one of the Code constants; 0 when Denied.
	Code int
	// Timeout is set with CodeTimeout.
	Timeout bool
	// NoSuchHost is set with CodeResolve when the name certainly has no
	// address; unset when nobody could say.
	NoSuchHost bool
	// Denied is set when the policy does not allow the address, or when it is
	// written in a form other than a plain one. Nothing was sent.
	Denied bool
	// BodySent is set when any byte of the request may have left. It is unset
	// only when certainly none has.
	BodySent bool
}

// Error returns one fixed sentence per kind of fault.
func (f *Fault) Error() string {
	switch {
	case f.Denied:
		return "The address is not allowed."
	case f.NoSuchHost:
		return "The host name does not exist."
	}
	switch f.Code {
	case CodeNotHTTP:
		return "The answer is not HTTP."
	case CodeMalformed:
		return "The call cannot be written as an HTTP request."
	case CodeResolve:
		return "The host name could not be looked up for now."
	case CodeConnect:
		return "The connection could not be opened."
	case CodeTruncated:
		return "The answer broke off before its end."
	case CodeTimeout:
		return "There was no complete answer in time."
	case CodeTLS:
		return "The TLS handshake failed."
	case CodeCancelled:
		return "The attempt was withdrawn."
	case CodeNoAnswer:
		return "The connection was closed without an answer."
	case CodeSend:
		return "The request could not be sent completely."
	case CodeReceive:
		return "The answer could not be received."
	case CodeCertificate:
		return "The certificate could not be verified."
	}
	return "The attempt failed."
}

// ended returns the fault of an attempt whose time is over or that was
// withdrawn; nil when err has another reason. The context is asked first: a
// cancelled attempt shows on the socket as a deadline in the past.
func ended(ctx context.Context, err error) *Fault {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &Fault{Code: CodeCancelled}
	}
	var timeout net.Error
	if ctx.Err() != nil || (errors.As(err, &timeout) && timeout.Timeout()) {
		return &Fault{Code: CodeTimeout, Timeout: true}
	}
	return nil
}
