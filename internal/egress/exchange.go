package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
)

const (
	// headLimit bounds all heads of one answer, the interim ones included, in
	// bytes. net/http's own default is as much; Phorge's curl stops at 300 KB.
	headLimit = 1 << 20
	// bodyLimit is how much of a body is read, in bytes, before the status
	// alone decides.
	bodyLimit = 1 << 20
	// recordAlert is the first byte of a TLS alert record (RFC 8446 section
	// 5.1), which a TLS port answers to plain HTTP. No HTTP answer begins so.
	recordAlert = 0x15
)

// exchange writes request to stream and reads the answer, both at once: a
// receiver may answer before it has read everything. conn is the connection
// beneath stream; closing it ends a write that nobody reads.
func exchange(ctx context.Context, conn, stream net.Conn, request []byte) (int, *Fault) {
	wrote := make(chan error, 1)
	go func() {
		_, err := stream.Write(request)
		wrote <- err
	}()
	in := &tap{conn: stream, budget: headLimit}
	status, fault := readAnswer(ctx, in)
	conn.Close()
	unsent := <-wrote != nil
	if fault == nil {
		return status, nil
	}
	// A receiver that hangs up on a half-sent request shows as a failed write
	// or as a failed read, whichever is first; it is one and the same fault.
	if unsent && !in.heard && (fault.Code == CodeReceive || fault.Code == CodeNoAnswer) {
		fault.Code = CodeSend
	}
	fault.BodySent = true
	return 0, fault
}

// readAnswer returns the status of the answer. Interim answers are skipped; one
// that nothing follows is the answer, and so is 101, which ends HTTP.
func readAnswer(ctx context.Context, in *tap) (int, *Fault) {
	r := bufio.NewReader(in)
	interim := 0
	for {
		first, err := r.Peek(1)
		if err != nil && in.eof && interim != 0 {
			return interim, nil
		}
		if err != nil {
			return 0, silenceFault(ctx, in)
		}
		if first[0] == recordAlert {
			return 0, &Fault{Code: CodeReceive}
		}
		answer, err := http.ReadResponse(r, nil) //nolint:bodyclose // the connection is closed, not the body: closing would read the rest
		if err != nil {
			return 0, headFault(ctx, in)
		}
		status := answer.StatusCode
		switch {
		case status < 100:
			// ReadResponse takes 000 and +20 for a status.
			return 0, &Fault{Code: CodeNotHTTP}
		case status > 199 || status == http.StatusSwitchingProtocols:
			return readBody(ctx, in, answer)
		}
		interim = status
	}
}

// readBody reads the body and keeps nothing of it.
func readBody(ctx context.Context, in *tap, answer *http.Response) (int, *Fault) {
	in.budget = -1
	_, err := io.CopyN(io.Discard, answer.Body, bodyLimit)
	// CopyN says EOF for a body that was shorter, which is a complete one.
	if err == nil || errors.Is(err, io.EOF) {
		return answer.StatusCode, nil
	}
	if fault := in.fault(ctx); fault != nil {
		return 0, fault
	}
	if in.eof {
		return 0, &Fault{Code: CodeTruncated}
	}
	return 0, &Fault{Code: CodeReceive} // garbled chunks
}

// silenceFault names the reason why not one byte of an answer could be read.
func silenceFault(ctx context.Context, in *tap) *Fault {
	if fault := in.fault(ctx); fault != nil {
		return fault
	}
	return &Fault{Code: CodeNoAnswer}
}

// headFault names the reason why an answer that began has no readable head. One
// that ends within its head is not HTTP, as with curl.
func headFault(ctx context.Context, in *tap) *Fault {
	if fault := in.fault(ctx); fault != nil {
		return fault
	}
	return &Fault{Code: CodeNotHTTP}
}
