package devstack_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
)

func temporalBin(t *testing.T) string {
	t.Helper()
	stacktest.NeedsServers(t)
	bin, err := devstack.FindTemporal(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

func startTemporal(t *testing.T, cfg devstack.TemporalConfig) *devstack.Temporal {
	t.Helper()
	cfg.Bin = temporalBin(t)
	srv, err := devstack.StartTemporal(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		srv.Kill()
		_ = srv.Stop(context.Background())
	})
	return srv
}

// quiet keeps the SDK's chatter out of a failing test's output.
func quiet() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }

func dial(t *testing.T, srv *devstack.Temporal) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{
		HostPort: srv.Addr(), Namespace: srv.Namespace(), Logger: quiet(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// runWorkflow runs one workflow to its end, with a typed search attribute set
// at its start.
func runWorkflow(t *testing.T, c client.Client, id string) {
	t.Helper()
	queue := stacktest.Name("queue")
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context) (string, error) { return "done", nil },
		workflow.RegisterOptions{Name: "probe"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	hook := temporal.NewSearchAttributeKeyKeyword("WaybillHook")
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: queue,
		TypedSearchAttributes: temporal.NewSearchAttributes(hook.ValueSet("PHID-HWBH-x")),
	}, "probe")
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := run.Get(t.Context(), &got); err != nil || got != "done" {
		t.Fatalf("workflow: %q, %v", got, err)
	}
}

func TestTemporalIsUsableAtOnce(t *testing.T) {
	srv := stacktest.Temporal(t)
	c := stacktest.Client(t)
	runWorkflow(t, c, stacktest.Name("wf"))
	if srv.UI() != "" {
		t.Errorf("headless, yet a UI at %s", srv.UI())
	}
	// Every attribute, not only the one above.
	for _, name := range devstack.SearchAttributes() {
		_, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: name + " = 'x'"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTemporalKeepsHistoryOverKillAndWipeLosesIt(t *testing.T) {
	srv := startTemporal(t, devstack.TemporalConfig{Dir: t.TempDir()})
	addr := srv.Addr()
	c := dial(t, srv)
	runWorkflow(t, c, "kept")

	srv.Kill()
	if err := srv.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if srv.Addr() != addr {
		t.Errorf("came back on %s, was on %s", srv.Addr(), addr)
	}
	if _, err := dial(t, srv).DescribeWorkflow(t.Context(), "kept", ""); err != nil {
		t.Errorf("after a kill: %v", err)
	}
	if err := srv.Wipe(); !errors.Is(err, devstack.ErrInUse) {
		t.Errorf("wiping a running server: %v, want ErrInUse", err)
	}
	if err := srv.Restart(t.Context()); !errors.Is(err, devstack.ErrInUse) {
		t.Errorf("restart of a running server: %v, want ErrInUse", err)
	}

	if err := srv.Halt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := srv.Wipe(); err != nil {
		t.Fatal(err)
	}
	if err := srv.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	c = dial(t, srv)
	if _, err := c.DescribeWorkflow(t.Context(), "kept", ""); err == nil {
		t.Error("a workflow survived the wipe")
	}
	runWorkflow(t, c, "fresh")
}

// The command line takes any pragma and says nothing about those SQLite does
// not know: what counts is what the file and the connection show.
func TestTemporalPragmasTakeEffect(t *testing.T) {
	dir := t.TempDir()
	srv := startTemporal(t, devstack.TemporalConfig{Dir: dir})
	header := make([]byte, 20)
	f, err := os.Open(filepath.Join(dir, "temporal.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Read(header); err != nil {
		t.Fatal(err)
	}
	// Bytes 18 and 19 of the file are the write and read version, 2 for WAL
	// (https://www.sqlite.org/fileformat.html, "The Database Header").
	if header[18] != 2 || header[19] != 2 {
		t.Errorf("file format versions %d and %d, want 2 and 2 (WAL)", header[18], header[19])
	}
	if err := srv.Halt(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTemporalNamespaceAndUI(t *testing.T) {
	port := unusedPort(t)
	srv := startTemporal(t, devstack.TemporalConfig{Dir: t.TempDir(), UIPort: port, Namespace: "waybill-dev"})
	if !strings.Contains(srv.UI(), "/namespaces/waybill-dev/") {
		t.Errorf("UI at %s", srv.UI())
	}
	runWorkflow(t, dial(t, srv), "in-namespace")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.UI(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the Web UI answers %s", resp.Status)
	}
}

func unusedPort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func TestTemporalRefusals(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	taken := l.Addr().(*net.TCPAddr).Port

	notExecutable := filepath.Join(t.TempDir(), "temporal")
	if err := os.WriteFile(notExecutable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bin := temporalBin(t)
	tests := []struct {
		name string
		cfg  devstack.TemporalConfig
		want error
	}{
		{"port taken", devstack.TemporalConfig{Bin: bin, Port: taken}, devstack.ErrPortInUse},
		{"UI port taken", devstack.TemporalConfig{Bin: bin, UIPort: taken}, devstack.ErrPortInUse},
		{"no program", devstack.TemporalConfig{Bin: filepath.Join(t.TempDir(), "none")}, devstack.ErrMissing},
		{"a directory", devstack.TemporalConfig{Bin: t.TempDir()}, devstack.ErrMissing},
		{"not executable", devstack.TemporalConfig{Bin: notExecutable}, devstack.ErrMissing},
		{"a program that ends", devstack.TemporalConfig{Bin: "/bin/false"}, devstack.ErrExited},
		{"a bad log level", devstack.TemporalConfig{Bin: bin, LogLevel: "loud"}, devstack.ErrExited},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Dir = t.TempDir()
			if _, err := devstack.StartTemporal(t.Context(), tt.cfg); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestTemporalRefusesASecondCopyOnItsDirectory(t *testing.T) {
	dir := t.TempDir()
	startTemporal(t, devstack.TemporalConfig{Dir: dir})
	_, err := devstack.StartTemporal(t.Context(), devstack.TemporalConfig{Bin: temporalBin(t), Dir: dir})
	if !errors.Is(err, devstack.ErrInUse) {
		t.Errorf("second copy: %v, want ErrInUse", err)
	}
}

func TestTemporalThatNeverAnswersGivesUp(t *testing.T) {
	script := filepath.Join(t.TempDir(), "temporal")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho waiting for nothing\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := devstack.StartTemporal(ctx, devstack.TemporalConfig{Bin: script, Dir: t.TempDir()})
	if !errors.Is(err, devstack.ErrNotReady) || !strings.Contains(err.Error(), "waiting for nothing") {
		t.Errorf("got %v, want ErrNotReady with the program's words", err)
	}
}

func TestFindTemporal(t *testing.T) {
	program := filepath.Join(t.TempDir(), "temporal")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := func(value string) func(string) string {
		return func(name string) string {
			if name == devstack.TemporalVariable {
				return value
			}
			return ""
		}
	}
	t.Run("the variable wins", func(t *testing.T) {
		if got, err := devstack.FindTemporal(env(program)); err != nil || got != program {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("a wrong variable is an error, not a fallback", func(t *testing.T) {
		_, err := devstack.FindTemporal(env(program + "x"))
		if !errors.Is(err, devstack.ErrMissing) || !strings.Contains(err.Error(), devstack.TemporalVariable) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("PATH", func(t *testing.T) {
		t.Chdir(t.TempDir())
		t.Setenv("PATH", filepath.Dir(program))
		if got, err := devstack.FindTemporal(env("")); err != nil || got != program {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("nowhere", func(t *testing.T) {
		t.Chdir(t.TempDir())
		t.Setenv("PATH", t.TempDir())
		_, err := devstack.FindTemporal(env(""))
		if !errors.Is(err, devstack.ErrMissing) || !strings.Contains(err.Error(), "make tools") || !strings.Contains(err.Error(), devstack.TemporalVariable) {
			t.Errorf("got %v", err)
		}
	})
}
