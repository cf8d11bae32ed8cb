package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// conditions prints what the figures depend on.
func (s *stack) conditions(ctx context.Context) error {
	db, err := s.open("")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var version, flush string
	if err := db.QueryRowContext(ctx, "SELECT VERSION(), @@innodb_flush_log_at_trx_commit").Scan(&version, &flush); err != nil {
		return err
	}
	temporal, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer temporal.Close()
	info, err := temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return err
	}
	fmt.Printf("%s, %d CPUs (%s), load %s, beside %s\n", s.now().UTC().Format(time.RFC3339), runtime.NumCPU(), cpuModel(), load(), others())
	fmt.Printf("%s %s/%s; database %s, flush at commit %s; Temporal server %s on SQLite (WAL, NORMAL)\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, version, flush, info.GetServerVersion())
	return nil
}

// dial connects to the stack's Temporal.
func (s *stack) dial(ctx context.Context) (client.Client, error) {
	return client.DialContext(ctx, client.Options{
		HostPort: s.temporal.Addr(), Namespace: s.temporal.Namespace(), Logger: silent{},
		// As serve does, so that both pay the same for the way to the server.
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}},
	})
}

// silent drops the SDK's log lines.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
