package herald

import (
	"fmt"
	"io"
	"strings"
)

// Status is the status column of a request row.
type Status string

// The statuses Phorge writes. Anything else in the column is somebody else's
// and is never a candidate for delivery.
const (
	StatusQueued Status = "queued"
	StatusSent   Status = "sent"
	StatusFailed Status = "failed"
)

// Result is the lastRequestResult column of a request row.
type Result string

// The results Phorge writes. ResultNone is also what a configuration failure
// leaves, which is why such failures never count for the breaker.
const (
	ResultNone Result = "none"
	ResultOkay Result = "okay"
	ResultFail Result = "fail"
)

// Request is one row of herald_webhookrequest.
type Request struct {
	ID         uint64
	PHID       string
	HookPHID   string
	ObjectPHID string
	Status     Status
	// Properties is the column's text as stored, not decoded.
	Properties []byte
	LastResult Result
	// LastEpoch, Created and Modified are seconds by the database's clock.
	// LastEpoch is 0 until an attempt has completed.
	LastEpoch int64
	Created   int64
	Modified  int64
}

// hookDisabled is the only hook status that stops delivery; Phorge calls hooks
// with any other value, known or not.
const hookDisabled = "disabled"

// Hook is one row of herald_webhook. URI and HMACKey are secrets: no way of
// printing or marshalling a Hook shows them.
type Hook struct {
	PHID   string
	Name   string
	URI    string
	Status string
	// HMACKey is the column's bytes as they are; Phorge does not hex-decode it.
	HMACKey []byte
}

// Disabled reports whether the operator has switched the hook off.
func (h Hook) Disabled() bool { return h.Status == hookDisabled }

// String names the hook without its secrets.
func (h Hook) String() string {
	return fmt.Sprintf("hook %s (%q, %s)", h.PHID, h.Name, h.Status)
}

// GoString keeps %#v from listing the fields.
func (h Hook) GoString() string { return h.String() }

// Format covers the verbs that would bypass String, such as %d on the key.
func (h Hook) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, h.String()) }

// MarshalJSON leaves URI and key out, so that a hook that strays into a log
// line or a workflow's input gives nothing away.
func (h Hook) MarshalJSON() ([]byte, error) {
	public := keyed(
		member{"phid", text(h.PHID)},
		member{"name", text(h.Name)},
		member{"status", text(h.Status)},
	)
	return appendFormatted(nil, public, 0), nil
}

// Speakable reports whether a PHID can be part of a workflow's id, which
// travels in a header and in JSON: printable ASCII, as every PHID that Phorge
// makes. Its column takes any bytes. What cannot be named, Waybill leaves to
// Phorge.
func Speakable(phid string) bool {
	return !strings.ContainsFunc(phid, func(r rune) bool { return r < ' ' || r > '~' })
}
