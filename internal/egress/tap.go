package egress

import (
	"context"
	"errors"
	"io"
)

// errHeadTooLong ends the reading of a head that does not end.
var errHeadTooLong = errors.New("egress: answer head too long")

// tap reads from the connection and remembers how reading ended. Faults are
// named by what the connection did, never by what a parser says about it:
// parsers' errors quote the receiver, and change.
type tap struct {
	conn io.Reader
	// budget is how many more bytes may be read; negative means any number.
	budget int64
	// heard is set when anything was read.
	heard bool
	// eof is set when the receiver's end of stream has been handed on.
	eof bool
	// failed is the error reading ended with, end of stream excepted.
	failed error
	// pending is an error that arrived along with data, kept for the next
	// Read: what is in the data must be judged before the end is known.
	pending error
}

// Read implements io.Reader.
func (t *tap) Read(p []byte) (int, error) {
	if t.budget == 0 {
		t.failed = errHeadTooLong
		return 0, t.failed
	}
	if t.budget > 0 && int64(len(p)) > t.budget {
		p = p[:t.budget]
	}
	n, err := 0, t.pending
	if err == nil {
		n, err = t.conn.Read(p)
	}
	if t.budget > 0 {
		t.budget -= int64(n)
	}
	if n > 0 {
		t.heard, t.pending = true, err
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		t.eof = true
	} else {
		t.failed = err
	}
	return 0, err
}

// fault returns the fault that reading ended with; nil when it is the parser
// that ended it, or the end of the stream.
func (t *tap) fault(ctx context.Context) *Fault {
	if t.failed == nil {
		return nil
	}
	if fault := ended(ctx, t.failed); fault != nil {
		return fault
	}
	return &Fault{Code: CodeReceive}
}
