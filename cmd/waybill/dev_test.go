package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// taken is a port that somebody listens on until the test ends.
func taken(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// unused are ports that nobody listens on.
func unused(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func freeDemo(t *testing.T) map[string]string {
	t.Helper()
	env := map[string]string{}
	for i, port := range unused(t, len(devPorts())) {
		env[devPorts()[i].variable] = fmt.Sprint(port)
	}
	return env
}

func TestEachTakenPortIsNamedWithTheWayOut(t *testing.T) {
	for _, p := range devPorts() {
		t.Run(p.flag, func(t *testing.T) {
			t.Chdir(t.TempDir())
			env := freeDemo(t)
			port := fmt.Sprint(taken(t))
			env[p.variable] = port
			got := execute(wired(), env, "dev")
			for _, part := range []string{port, p.what, p.variable, "--" + p.flag, "nothing was started", "in use"} {
				if got.code != exitFailed || !strings.Contains(got.stderr, part) {
					t.Errorf("code %d, no %q in %s", got.code, part, got.stderr)
				}
			}
			for _, other := range devPorts() {
				if other.flag != p.flag && strings.Contains(got.stderr, other.variable) {
					t.Errorf("%s is blamed, too: %s", other.variable, got.stderr)
				}
			}
			if _, err := os.Stat(".waybill/mariadb"); err == nil {
				t.Error("data were made")
			}
		})
	}
}

func TestASecondDemoInTheFolderIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	lock, err := lockDemo()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	got := execute(wired(), freeDemo(t), "dev")
	if got.code != exitFailed || !strings.Contains(got.stderr, fmt.Sprintf("already runs in this folder (process %d)", os.Getpid())) {
		t.Errorf("%+v", got)
	}
}

// Where the program is looked for can be read before it is missing.
func TestTheHelpOfTheDemoNamesTheTemporalSetting(t *testing.T) {
	if got := execute(wired(), nil, "dev", "--help"); got.code != exitDone || !strings.Contains(got.stdout, "WAYBILL_TEMPORAL_BIN") {
		t.Errorf("%+v", got)
	}
}

func TestAMissingTemporalIsNamedBeforeAnythingStarts(t *testing.T) {
	t.Chdir(t.TempDir())
	env := freeDemo(t)
	env["WAYBILL_TEMPORAL_BIN"] = "/nowhere/temporal"
	got := execute(wired(), env, "dev")
	if got.code != exitFailed || !strings.Contains(got.stderr, "/nowhere/temporal") || !strings.Contains(got.stderr, "make tools") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(".waybill/mariadb"); err == nil {
		t.Error("data were made")
	}
	if _, err := os.Stat(controlPath()); err == nil {
		t.Error("a socket is left")
	}
}

func TestFaultyDemoSettingsAreUsageErrors(t *testing.T) {
	for _, test := range []struct {
		env   map[string]string
		args  []string
		words []string
	}{
		{map[string]string{"DEMO_UI_PORT": "x", "DEMO_API_PORT": "65536", "DEMO_QUIET": "perhaps"}, nil, []string{"DEMO_UI_PORT", "DEMO_API_PORT", "DEMO_QUIET"}},
		{nil, []string{"--receiver-port", "0"}, []string{"--receiver-port"}},
		{map[string]string{"DEMO_UI_PORT": "8160"}, nil, []string{"--ui-port", "--api-port", "both 8160"}},
	} {
		got := execute(recorded(new([]string), nil), test.env, append([]string{"dev"}, test.args...)...)
		for _, word := range test.words {
			if got.code != exitUsage || !strings.Contains(got.stderr, word) {
				t.Errorf("%v: code %d, no %q in %s", test.args, got.code, word, got.stderr)
			}
		}
	}
}

func TestFlagsGoBeforeVariables(t *testing.T) {
	var o devOptions
	w := work{dev: func(_ context.Context, p process) (err error) {
		o, err = loadDevOptions(p.getenv)
		return err
	}}
	got := execute(w, map[string]string{"DEMO_UI_PORT": "1001", "DEMO_API_PORT": "1002"}, "dev", "--ui-port", "1003", "--quiet")
	if got.code != exitDone || o.port(uiPort) != 1003 || o.port(apiPort) != 1002 || o.port(temporalPort) != 7233 || !o.quiet {
		t.Errorf("%+v, %+v", got, o)
	}
}

func TestOrdersWithoutADemoSayHowToGetOne(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"enqueue", "break", "heal", "pause", "resume"} {
		got := execute(wired(), nil, "dev", "demo", name)
		if got.code != exitFailed || !strings.Contains(got.stderr, "no demo runs in this folder") || !strings.Contains(got.stderr, "make run") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// One that was killed leaves its socket.
	if err := os.Mkdir(devDir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: controlPath(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	if got := execute(wired(), nil, "dev", "demo", "heal"); !strings.Contains(got.stderr, "no demo runs in this folder") {
		t.Errorf("with a socket left behind: %+v", got)
	}
}

func TestOrdersToADemoThatStartsAreRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir(devDir, 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := startControl(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(controlPath()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	if got := execute(wired(), nil, "dev", "demo", "enqueue"); got.code != exitFailed || !strings.Contains(got.stderr, "still starting") {
		t.Errorf("%+v", got)
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(controlPath()); err == nil {
		t.Error("the socket is left")
	}
}

func TestOrdersThatCannotBeMeant(t *testing.T) {
	for _, args := range [][]string{
		{"enqueue", "0"}, {"enqueue", "-3"}, {"enqueue", "1000000"}, {"enqueue", "slow", "3"}, {"enqueue", "1", "slow", "x"},
		{"break", "--with", "200"}, {"break", "--with", "600"}, {"break", "--with", "never"}, {"break", "a", "b"}, {"mend"},
	} {
		if got := execute(wired(), nil, append([]string{"dev", "demo"}, args...)...); got.code != exitUsage {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestColoursNeedATerminalThatWantsThem(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	getenv := func(string) string { return "" }
	if colored(process{stdout: f, getenv: getenv}) || colored(process{stdout: &bytes.Buffer{}, getenv: getenv}) {
		t.Error("colours into a file")
	}
}

func TestPatienceEndsWithTheErrorOrWithSuccess(t *testing.T) {
	tries := 0
	sometime := func() error {
		if tries++; tries < 3 {
			return errors.New("busy")
		}
		return nil
	}
	if err := patiently(t.Context(), time.Minute, sometime); err != nil || tries != 3 {
		t.Errorf("%d tries, %v", tries, err)
	}
	tries = 0
	if err := patiently(t.Context(), 0, sometime); err == nil || tries != 1 {
		t.Errorf("without patience: %d tries, %v", tries, err)
	}
}

// The file for other terminals has what the demo runs with, the operator's own
// choice included.
func TestTheDemosPaceIsTheOperators(t *testing.T) {
	for name, tt := range map[string]struct{ env, want map[string]string }{
		"nothing chosen": {nil, map[string]string{
			"WAYBILL_HERALD_RETRY_BACKOFF": devRetryBackoff, "WAYBILL_HERALD_BREAKER_WINDOW": devBreakerWindow,
		}},
		"a backoff": {map[string]string{"WAYBILL_HERALD_RETRY_BACKOFF": "5m"}, map[string]string{
			"WAYBILL_HERALD_RETRY_BACKOFF": "5m", "WAYBILL_HERALD_BREAKER_WINDOW": devBreakerWindow,
		}},
	} {
		if got := pace(func(name string) string { return tt.env[name] }); !maps.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
