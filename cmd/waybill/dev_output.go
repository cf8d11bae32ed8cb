package main

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// readOutput is an output that says when nobody reads it any more.
type readOutput struct {
	io.Writer
	closed func()
}

func (o readOutput) Write(text []byte) (int, error) {
	n, err := o.Writer.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		o.closed()
	}
	return n, err
}

// survivePipes makes a write to a closed pipe (`waybill dev | head`) an error,
// where it would end the process at once and cost the next start a lease. The
// signal itself says nothing: it comes for network connections, too. Ignoring it
// would be inherited by the servers.
func survivePipes() (restore func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	return func() { signal.Stop(signals) }
}
