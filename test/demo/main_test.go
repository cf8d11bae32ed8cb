package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack/stacktest"
	"waybill/test/scenario"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

// The compose file's database server, demo and Waybill fit together: the users
// that its SQL makes, the rights that the demo grants, and a `serve` that has
// waited for both. Users and databases have fixed names, so this test has the
// server of its test binary to itself.
func TestTheDemoDeliversWithTheRightsThatItGrants(t *testing.T) {
	server, temporal := stacktest.MariaDB(t), stacktest.Temporal(t)
	addr := server.Addr()
	var program scenario.Binary
	serve := scenario.Start(t, program.Path(t), map[string]string{
		"WAYBILL_HERALD_DSN":       "waybill:demo-only-waybill@tcp(" + addr + ")/demo_herald",
		"WAYBILL_DSN":              "waybill:demo-only-waybill@tcp(" + addr + ")/waybill",
		"WAYBILL_TEMPORAL_ADDRESS": temporal.Addr(),
		"WAYBILL_HERALD_ALLOW":     "127.0.0.0/8",
		"WAYBILL_LISTEN":           "127.0.0.1:0",
	}, "serve")
	scenario.Until(t, scenario.Patience, "waits for its users", func() bool {
		return serve.Log.Find("database is not ready, trying again") != nil
	})
	initialise(t)
	out := start(t, map[string]string{
		"DEMO_DSN": "demo:demo-only-phorge@tcp(" + addr + ")/", "DEMO_LISTEN": "127.0.0.1:0", "DEMO_GRANT_TO": "waybill",
	})
	serve.AwaitReady(t)
	for _, want := range []string{
		"healthy  200        signature ok", "slow     200        signature ok", "fail     503        signature ok",
	} {
		scenario.Until(t, 2*scenario.Patience, func() string { return want + " in\n" + out.String() }, func() bool {
			return strings.Contains(out.String(), want)
		})
	}
	if odd := serve.Log.Find("table cannot be read"); odd != nil {
		t.Errorf("a right is missing: %v", odd)
	}
}

// initialise does what the image does with deploy/compose/mysql.
func initialise(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/compose/mysql/10-users.sql")
	if err != nil {
		t.Fatal(err)
	}
	db := stacktest.Open(t, stacktest.MariaDB(t), "")
	for statement := range strings.SplitSeq(string(text), ";") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// start runs the demo until the test ends, and demands that it then ends too.
func start(t *testing.T, env map[string]string) *scenario.Log {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, ended := &scenario.Log{}, make(chan error, 1)
	go func() { ended <- run(ctx, func(name string) string { return env[name] }, out, time.Now) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the demo ended with %v", err)
		}
	})
	return out
}

// A database server that is not there yet is waited for, not an error: compose
// starts both at once.
func TestTheDemoWaitsForItsDatabaseServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	out := start(t, map[string]string{"DEMO_DSN": "demo:x@tcp(" + addr + ")/"})
	scenario.Until(t, scenario.Patience, "says that it waits", func() bool {
		return strings.Contains(out.String(), "waiting for the database server")
	})
}

func TestTheDemoNamesAWrongSetting(t *testing.T) {
	for _, dsn := range []string{"", "hunter2@nowhere"} {
		err := run(t.Context(), func(string) string { return dsn }, &scenario.Log{}, time.Now)
		if err == nil || !strings.Contains(fmt.Sprint(err), "DEMO_DSN") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", dsn, err)
		}
	}
}
