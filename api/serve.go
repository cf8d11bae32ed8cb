package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Limits of a connection. Answers are small and come from memory or from one
// count, so that a client which needs longer is broken or hostile.
const (
	readHeaderTimeout = 5 * time.Second
	readWholeTimeout  = 10 * time.Second
	writeTimeout      = 30 * time.Second // a scrape waits for observed gauges
	idleTimeout       = 60 * time.Second
	largestHeader     = 16 << 10 // a bearer token and what proxies add
	// shutdownTimeout is longer than any source may take to answer.
	shutdownTimeout = 6 * time.Second
)

// Server builds an http.Server with every timeout and limit set. Its ErrorLog
// is nil, which means the standard logger: set it where lines must be JSON.
func Server(addr string, handler http.Handler) *http.Server {
	return &http.Server{
		Addr:              addr,
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readWholeTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    largestHeader,
	}
}

// Serve answers on the listener until ctx ends, then lets requests under way
// finish (six seconds at most) and returns nil. It owns the listener. The
// error is the listener's, or that some requests had to be cut off.
func Serve(ctx context.Context, listener net.Listener, server *http.Server) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving HTTP: %w", err)
	case <-ctx.Done():
	}
	// ctx is over; what remains must have a deadline of its own.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		return errors.Join(errCutOff, server.Close())
	}
	return nil
}

// errCutOff says that shutdown did not wait for everybody.
var errCutOff = errors.New("HTTP requests were still running at shutdown and were cut off")
