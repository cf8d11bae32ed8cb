package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/ledger"
)

// headerWithin bounds a caller of the control socket who says nothing.
const headerWithin = 10 * time.Second

// controlPath is the socket on which the running demo takes orders. A path
// relative to the folder: a socket's name may have 103 bytes only.
func controlPath() string { return filepath.Join(devDir, "dev.sock") }

// control takes orders from `waybill dev demo`. It is a socket in the folder
// rather than a port, so that only who may write there can give any.
type control struct {
	server *http.Server
	stack  atomic.Pointer[demoStack] // nil until the demo is up
}

// startControl listens. The demo's lock is held: a socket that is there was
// left by a demo that was killed.
func startControl(ctx context.Context) (*control, error) {
	_ = os.Remove(controlPath())
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", controlPath())
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := os.Chmod(controlPath(), 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("control socket: %w", err)
	}
	c := &control{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{order}/{hook}", c.serve)
	c.server = &http.Server{Handler: mux, ReadHeaderTimeout: headerWithin}
	go func() { _ = c.server.Serve(l) }() // returns ErrServerClosed at close
	return c, nil
}

// close also removes the socket.
func (c *control) close() error { return c.server.Close() }

func (c *control) serve(w http.ResponseWriter, r *http.Request) {
	s := c.stack.Load()
	if s == nil {
		http.Error(w, "the demo is still starting; try again when it shows deliveries", http.StatusServiceUnavailable)
		return
	}
	said, err := s.obey(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.screen.Say("%s  %s", s.now().Format(time.TimeOnly), said)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, said+"\n") //nolint:gosec // text for a terminal, on a socket that no browser reaches
}

// obey does what was ordered and says what it did.
func (s *demoStack) obey(r *http.Request) (string, error) {
	name := r.PathValue("hook")
	hook, err := s.demo.Hook(name)
	if err != nil {
		return "", err
	}
	switch r.PathValue("order") {
	case orderEnqueue:
		n, err := strconv.Atoi(r.FormValue("n"))
		if err == nil {
			err = s.demo.EnqueueTo(r.Context(), name, n)
		}
		return fmt.Sprintf("queued for %s: %d", name, n), err
	case orderBreak:
		return s.breakHook(name, r.FormValue("with"))
	case orderHeal:
		endpoint, err := s.demo.Endpoint(name)
		if err == nil {
			s.receiver.Heal(endpoint)
		}
		return name + " answers 200 again; what waits is tried within a minute", err
	case orderPause, orderResume:
		change := hookChange{phids: []string{hook.PHID}, by: r.FormValue("by"), reason: r.FormValue("reason")}
		return s.change(r, name, change)
	}
	return "", errors.New("no such order")
}

// change pauses or resumes as `waybill hooks` does.
func (s *demoStack) change(r *http.Request, name string, c hookChange) (string, error) {
	j := s.job
	j.stdout = io.Discard
	if r.PathValue("order") == orderPause {
		return name + " is paused; `waybill dev demo resume " + name + "` ends that", pauseHooks(r.Context(), j, c)
	}
	if err := resumeHooks(r.Context(), j, c); err != nil {
		return "", err
	}
	return s.resumed(r.Context(), name, c.phids[0])
}

// resumed says how a hook stands after a resume: a pause of all hooks may hold
// it still.
func (s *demoStack) resumed(ctx context.Context, name, phid string) (said string, err error) {
	j := s.job
	j.stdout = io.Discard
	err = withLedger(j, func(l *ledger.Ledger) error {
		p, err := l.Paused(ctx, phid)
		said = name + " is called again"
		if p != nil {
			said = name + " is still " + strings.TrimSuffix(standing(ctx, l, phid, ""), ".")
		}
		return err
	}, "")
	return said, err
}

// breakHook makes the receiver fail for a hook: with a status, or by silence.
func (s *demoStack) breakHook(name, with string) (string, error) {
	endpoint, err := s.demo.Endpoint(name)
	if err != nil {
		return "", err
	}
	if with == withHang {
		s.receiver.BreakAs(endpoint, devstack.Failure{Hang: true})
		return name + " does not answer any more", nil
	}
	status, err := strconv.Atoi(with)
	if err != nil {
		return "", err
	}
	s.receiver.BreakAs(endpoint, devstack.Failure{Status: status})
	return name + " answers " + with + " from now on", nil
}
