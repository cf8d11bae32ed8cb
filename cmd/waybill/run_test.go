package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// update rewrites the golden files: go test ./cmd/waybill -update.
var update = flag.Bool("update", false, "rewrite the golden files")

// outcome is what one command line did.
type outcome struct {
	code           int
	stdout, stderr string
}

// execute runs one command line with the given environment and work.
func execute(w work, env map[string]string, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	var environ []string
	for name, value := range env {
		environ = append(environ, name+"="+value)
	}
	code := runWith(context.Background(), args, process{
		getenv: func(name string) string { return env[name] }, environ: environ,
		stdout: &stdout, stderr: &stderr,
		now: func() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) },
	}, w)
	return outcome{code, stdout.String(), stderr.String()}
}

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestConfigDefaults(t *testing.T) {
	got := execute(work{}, nil, "config")
	if got.code != exitDone || got.stderr != "" {
		t.Errorf("code %d, stderr %q", got.code, got.stderr)
	}
	golden(t, "config-defaults.txt", got.stdout)
}

// everything sets what can be set without a file.
var everything = map[string]string{
	"WAYBILL_HERALD_DSN":              "waybill:hunter2@tcp(db:3306)/phabricator_herald?timeout=3s",
	"WAYBILL_DSN":                     "waybill:hunter2@tcp(db:3306)/waybill",
	"WAYBILL_TOKEN":                   "hunter2",
	"WAYBILL_TEMPORAL_API_KEY":        "hunter2",
	"WAYBILL_TEMPORAL_ADDRESS":        "temporal:7233",
	"WAYBILL_LISTEN":                  ":8160",
	"WAYBILL_HERALD_ALLOW":            "10.0.0.0/8 fd00::/8",
	"WAYBILL_HERALD_DELIVERY_TIMEOUT": "30s",
	"WAYBILL_HERALD_TAKEOVER":         "external",
	"WAYBILL_LOG_FORMAT":              "console",
	"WAYBILL_HERALD_POL_INTERVAL":     "hunter2",
}

func TestConfigEverything(t *testing.T) {
	got := execute(work{}, everything, "config")
	if got.code != exitDone {
		t.Fatalf("code %d: %s", got.code, got.stderr)
	}
	golden(t, "config-everything.txt", got.stdout)
	golden(t, "config-everything-warnings.txt", got.stderr)
	if strings.Contains(got.stdout+got.stderr, "hunter2") {
		t.Error("a secret shows")
	}
}

func TestConfigFaults(t *testing.T) {
	got := execute(work{}, map[string]string{
		"WAYBILL_HERALD_DSN":           "waybill:hunter2@db/phabricator_herald",
		"WAYBILL_HERALD_POLL_INTERVAL": "15",
		"WAYBILL_HERALD_ALLOW":         "10.0.0.1, 10.1.0.0/8",
		"WAYBILL_LISTEN":               "8160",
		"WAYBILL_LOG_LEVEL":            "loud",
		"WAYBILL_TOKEN":                "hunter2\n",
	}, "config")
	if got.code != exitUsage || got.stdout != "" {
		t.Errorf("code %d, stdout %q", got.code, got.stdout)
	}
	golden(t, "config-faults.txt", got.stderr)
}

func TestHelpEnvironment(t *testing.T) {
	got := execute(work{}, nil, "help", "environment")
	if got.code != exitDone {
		t.Errorf("code %d", got.code)
	}
	golden(t, "help-environment.txt", got.stdout)
	if other := execute(work{}, nil, "environment"); other.stdout != got.stdout {
		t.Error("`waybill environment` says something else")
	}
}

func TestVersion(t *testing.T) {
	got := execute(work{}, nil, "version")
	if got.code != exitDone || !strings.HasPrefix(got.stdout, "waybill ") {
		t.Errorf("%+v", got)
	}
	for in, want := range map[string]string{"": unversioned, "(devel)": unversioned, "v1.2.3": "v1.2.3"} {
		if got := stamped(in); got != want {
			t.Errorf("stamped(%q) = %q", in, got)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, test := range []struct {
		name  string
		args  []string
		code  int
		words string // in stdout on success, in stderr otherwise
	}{
		{"nothing", nil, exitDone, "Available Commands"},
		{"help", []string{"help"}, exitDone, "Available Commands"},
		{"--help", []string{"--help"}, exitDone, "Exit codes: 0 done"},
		{"help about a command", []string{"help", "config"}, exitDone, "effective value"},
		{"help about nothing", []string{"help", "nothing"}, exitUsage, "no such help topic"},
		{"help about too much", []string{"help", "config", "more"}, exitUsage, "no such help topic"},
		{"unknown command", []string{"deliver"}, exitUsage, `unknown command "deliver"`},
		{"unknown flag", []string{"config", "--json"}, exitUsage, "unknown flag"},
		{"surplus argument", []string{"version", "now"}, exitUsage, "now"},
		{"a command without work", []string{"serve"}, exitUsage, `unknown command "serve"`},
		{"hooks without work", []string{"hooks", "list"}, exitUsage, `unknown command "hooks"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := execute(work{}, nil, test.args...)
			said := got.stdout
			if test.code != exitDone {
				said = got.stderr
			}
			if got.code != test.code || !strings.Contains(said, test.words) {
				t.Errorf("%+v", got)
			}
			if test.code != exitDone && got.stdout != "" {
				t.Errorf("an error on stdout: %q", got.stdout)
			}
		})
	}
}

// services are the commands that only need a configuration.
var services = []string{"serve", "worker", "starter", "api", "migrate"}

// recorded is work that notes what it was called for.
func recorded(calls *[]string, result error) work {
	note := func(name string) func(context.Context, job) error {
		return func(_ context.Context, j job) error {
			*calls = append(*calls, name)
			j.logger.Info("working")
			return result
		}
	}
	change := func(name string) func(context.Context, job, hookChange) error {
		return func(_ context.Context, _ job, c hookChange) error {
			target := strings.Join(c.phids, "+")
			if c.all {
				target = "all"
			}
			*calls = append(*calls, name+" "+target+" by "+c.by+" because "+c.reason)
			return result
		}
	}
	list := func(_ context.Context, _ job, asJSON bool) error {
		*calls = append(*calls, "list"+map[bool]string{true: " as JSON"}[asJSON])
		return result
	}
	show := func(what string) func(context.Context, job, string, bool) error {
		return func(_ context.Context, _ job, name string, asJSON bool) error {
			*calls = append(*calls, what+" "+name+map[bool]string{true: " as JSON"}[asJSON])
			return result
		}
	}
	return work{
		dev: func(context.Context, process) error {
			*calls = append(*calls, "dev")
			return result
		},
		serve: note("serve"), worker: note("worker"), starter: note("starter"), api: note("api"), migrate: note("migrate"),
		hooks: hookWork{list: list, show: show("show"), pause: change("pause"), release: change("release"), resume: change("resume")},
		requests: requestWork{
			list: func(_ context.Context, _ job, l listing) error {
				*calls = append(*calls, fmt.Sprintf("rows of %q in %v, %d, %v", l.hook, l.states, l.limit, l.asJSON))
				return result
			},
			show: show("row"),
			retry: func(_ context.Context, _ job, w retryWish) error {
				*calls = append(*calls, fmt.Sprintf("retry %v of %q, %v", w.requests, w.hook, w.asJSON))
				return result
			},
		},
	}
}

func TestCommandsReachTheirWork(t *testing.T) {
	for _, name := range append([]string{"dev"}, services...) {
		var calls []string
		got := execute(recorded(&calls, nil), nil, name)
		if got.code != exitDone || len(calls) != 1 || calls[0] != name {
			t.Errorf("%s: %+v, calls %q", name, got, calls)
		}
		if got.stdout != "" {
			t.Errorf("%s: stdout %q", name, got.stdout)
		}
		if extra := execute(recorded(&calls, nil), nil, name, "extra"); extra.code != exitUsage {
			t.Errorf("%s extra: code %d", name, extra.code)
		}
		if help := execute(recorded(&calls, nil), nil, name, "--help"); help.code != exitDone || !strings.Contains(help.stdout, "waybill "+name) {
			t.Errorf("%s --help: %+v", name, help)
		}
	}
}

func TestFailingWork(t *testing.T) {
	for _, args := range [][]string{{"dev"}, {"serve"}, {"hooks", "list"}, {"hooks", "pause", "--all"}} {
		var calls []string
		got := execute(recorded(&calls, errors.New("the database went away")), nil, args...)
		if got.code != exitFailed || !strings.Contains(got.stderr, "waybill: the database went away") {
			t.Errorf("%v: %+v", args, got)
		}
		if strings.Contains(got.stderr, "waybill help") {
			t.Errorf("%v: a failure is explained with usage: %q", args, got.stderr)
		}
	}
}

func TestFaultyConfigurationStopsEveryService(t *testing.T) {
	for _, name := range services {
		var calls []string
		got := execute(recorded(&calls, nil), map[string]string{"WAYBILL_LISTEN": "x", "WAYBILL_LOG_LEVEL": "y"}, name)
		if got.code != exitUsage || len(calls) != 0 {
			t.Errorf("%s: code %d, calls %q", name, got.code, calls)
		}
		for _, variable := range []string{"WAYBILL_LISTEN", "WAYBILL_LOG_LEVEL"} {
			if !strings.Contains(got.stderr, variable+": ") {
				t.Errorf("%s: %s is not reported:\n%s", name, variable, got.stderr)
			}
		}
	}
}

func TestServicesLogWarningsFirst(t *testing.T) {
	var calls []string
	got := execute(recorded(&calls, nil), map[string]string{"WAYBILL_TOKN": "hunter2", "WAYBILL_HERALD_CLAIM_LEASE": "5s"}, "serve")
	want := `{"level":"warn","time":"2026-03-04T12:00:00.000Z","message":"configuration","warning":"WAYBILL_HERALD_CLAIM_LEASE: 5s is too short and was raised to 30s: 5s to start + 15s delivery timeout + 10s write allowance"}
{"level":"warn","time":"2026-03-04T12:00:00.000Z","message":"configuration","warning":"WAYBILL_TOKN: no such variable; did you mean WAYBILL_TOKEN?"}
{"level":"info","time":"2026-03-04T12:00:00.000Z","message":"working"}
`
	if diff := cmp.Diff(want, got.stderr); diff != "" {
		t.Error(diff)
	}
}

func TestHooks(t *testing.T) {
	const one, two = "PHID-HWBH-aaaaaaaaaaaaaaaaaaaa", "PHID-HWBH-bbbbbbbbbbbbbbbbbbbb"
	for _, test := range []struct {
		args []string
		call string // empty: refused
	}{
		{[]string{"list"}, "list"},
		{[]string{"pause", one}, "pause " + one + " by ann because "},
		{[]string{"pause", one, two, "--reason", "storage upgrade"}, "pause " + one + "+" + two + " by ann because storage upgrade"},
		{[]string{"pause", "--all", "--by", "bob"}, "pause all by bob because "},
		{[]string{"release", one, "--reason", "trial over"}, "release " + one + " by ann because trial over"},
		{[]string{"release", "--all"}, "release all by ann because "},
		{[]string{"release"}, ""},
		{[]string{"release", "--all", one}, ""},
		{[]string{"resume", "--all"}, "resume all by ann because "},
		{[]string{"resume", one}, "resume " + one + " by ann because "},
		{[]string{"pause"}, ""},
		{[]string{"pause", "--all", one}, ""},
		{[]string{"pause", "PHID-HWBR-aaaaaaaaaaaaaaaaaaaa"}, ""},
		{[]string{"pause", "my hook"}, ""},
		{[]string{"resume"}, ""},
		{[]string{"list", "--json"}, "list as JSON"},
		{[]string{"show", one}, "show " + one},
		{[]string{"show", one, "--json"}, "show " + one + " as JSON"},
		{[]string{"show"}, ""},
		{[]string{"show", one, two}, ""},
		{[]string{"show", "my hook"}, ""},
		{[]string{"list", one}, ""},
		{[]string{"stop"}, ""},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			var calls []string
			got := execute(recorded(&calls, nil), map[string]string{"USER": "ann"}, append([]string{"hooks"}, test.args...)...)
			if test.call == "" {
				if got.code != exitUsage || len(calls) != 0 {
					t.Errorf("%+v, calls %q", got, calls)
				}
				return
			}
			if got.code != exitDone || len(calls) != 1 || calls[0] != test.call {
				t.Errorf("%+v, calls %q", got, calls)
			}
		})
	}
	var calls []string
	if got := execute(recorded(&calls, nil), nil, "hooks"); got.code != exitDone || !strings.Contains(got.stdout, "resume") {
		t.Errorf("hooks alone: %+v", got)
	}
}

// TestPartlyWiredHooks: only what has work appears.
func TestPartlyWiredHooks(t *testing.T) {
	list := work{hooks: hookWork{list: func(context.Context, job, bool) error { return nil }}}
	got := execute(list, nil, "hooks")
	if !strings.Contains(got.stdout, "list") || strings.Contains(got.stdout, "resume  ") {
		t.Errorf("%+v", got)
	}
}

// TestThisBuild runs the real tree.
func TestThisBuild(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), []string{"version"}, process{getenv: func(string) string { return "" }, stdout: &stdout, stderr: &stderr})
	if code != exitDone || stdout.Len() == 0 || stderr.Len() != 0 {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
	}
}

// TestErrorsKeepTheirCause lets callers look through the marks.
func TestErrorsKeepTheirCause(t *testing.T) {
	cause := errors.New("cause")
	if err := failed(cause); !errors.Is(err, cause) || err.Error() != "cause" {
		t.Errorf("workError: %v", err)
	}
	if err := error(&configError{cause}); !errors.Is(err, cause) {
		t.Errorf("configError: %v", err)
	}
	if failed(nil) != nil {
		t.Error("nil failed")
	}
}

// brokenPipe refuses every write.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestBrokenPipe(t *testing.T) {
	code := run(context.Background(), []string{"config"}, process{
		getenv: func(string) string { return "" }, stdout: brokenPipe{}, stderr: brokenPipe{},
	})
	if code != exitFailed {
		t.Errorf("code %d", code)
	}
}

// A fault of the configuration that only the work can find is one all the same.
func TestWorkMayFindTheConfigurationAtFault(t *testing.T) {
	got := execute(wired(), nil, "serve")
	if got.code != exitUsage || !strings.Contains(got.stderr, "WAYBILL_HERALD_DSN") {
		t.Errorf("serve without a lane: %+v", got)
	}
}
