package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// noon is what the clock of these tests says.
func noon() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 7_000_000, time.UTC) }

// lines decodes what a JSON logger wrote.
func lines(t *testing.T, written []byte) []map[string]any {
	t.Helper()
	var decoded []map[string]any
	for line := range strings.Lines(string(written)) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		decoded = append(decoded, fields)
	}
	return decoded
}

func TestJSONLine(t *testing.T) {
	var out bytes.Buffer
	logger, _, err := NewLogger(LogOptions{Output: &out, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	logger.Named("worker").Info("attempt finished", zap.Duration("duration", 1500*time.Millisecond), zap.Int("http_status", 200))
	want := `{"level":"info","time":"2026-03-04T12:00:00.007Z","logger":"worker","message":"attempt finished","duration":1.5,"http_status":200}` + "\n"
	if got := out.String(); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestFormat(t *testing.T) {
	for _, test := range []struct {
		format   string
		terminal bool
		json     bool
	}{
		{"", false, true}, {"", true, false}, {"json", true, true}, {"json", false, true},
		{"console", false, false}, {"console", true, false},
	} {
		var out bytes.Buffer
		logger, _, err := NewLogger(LogOptions{Output: &out, Format: test.format, Terminal: test.terminal})
		if err != nil {
			t.Fatal(err)
		}
		logger.Info("hello")
		if got := strings.HasPrefix(out.String(), "{"); got != test.json {
			t.Errorf("format %q, terminal %t: %s", test.format, test.terminal, out.String())
		}
	}
}

func TestLevels(t *testing.T) {
	order := []string{"debug", "info", "warn", "error"}
	for threshold, level := range order {
		var out bytes.Buffer
		logger, _, err := NewLogger(LogOptions{Output: &out, Level: level})
		if err != nil {
			t.Fatal(err)
		}
		logger.Debug("x")
		logger.Info("x")
		logger.Warn("x")
		logger.Error("x")
		if got := len(lines(t, out.Bytes())); got != len(order)-threshold {
			t.Errorf("level %s writes %d lines", level, got)
		}
	}
	_, _, err := NewLogger(LogOptions{Output: &bytes.Buffer{}, Level: "verbose"})
	if err == nil || !strings.Contains(err.Error(), `"verbose" is none of`) {
		t.Errorf("error = %v", err)
	}
}

func TestLevelChangesWhileRunning(t *testing.T) {
	var out bytes.Buffer
	logger, level, err := NewLogger(LogOptions{Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	child := logger.Named("child")
	child.Debug("before")
	level.SetLevel(zapcore.DebugLevel)
	child.Debug("after")
	if got := lines(t, out.Bytes()); len(got) != 1 || got[0]["message"] != "after" {
		t.Errorf("lines = %v", got)
	}
}

// TestOwnClock: without a clock of the caller zap's own stamps the lines.
func TestOwnClock(t *testing.T) {
	var out bytes.Buffer
	logger, _, err := NewLogger(LogOptions{Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	logger.Info("x")
	stamp, _ := lines(t, out.Bytes())[0]["time"].(string)
	if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)$`).MatchString(stamp) {
		t.Errorf("time = %q", stamp)
	}
	ticker := clock(noon).NewTicker(time.Hour)
	ticker.Stop()
}

func TestTemporalLevels(t *testing.T) {
	for _, test := range []struct {
		name string
		call func(log.Logger)
		want zapcore.Level
	}{
		{"debug stays", func(l log.Logger) { l.Debug("x") }, zapcore.DebugLevel},
		{"info becomes debug", func(l log.Logger) { l.Info("Started Worker") }, zapcore.DebugLevel},
		{"warn stays", func(l log.Logger) { l.Warn("Failed to poll for task.") }, zapcore.WarnLevel},
		{"error stays", func(l log.Logger) { l.Error("Workflow panic") }, zapcore.ErrorLevel},
		{"a failed activity becomes debug", func(l log.Logger) { l.Error("Activity error.") }, zapcore.DebugLevel},
	} {
		t.Run(test.name, func(t *testing.T) {
			core, seen := observer.New(zapcore.DebugLevel)
			test.call(TemporalLogger(zap.New(core)))
			entries := seen.All()
			if len(entries) != 1 || entries[0].Level != test.want || entries[0].LoggerName != "temporal" {
				t.Errorf("entries = %+v", entries)
			}
		})
	}
}

func TestTemporalQuietAtInfo(t *testing.T) {
	core, seen := observer.New(zapcore.InfoLevel)
	sdk := TemporalLogger(zap.New(core))
	sdk.Debug("x", "Costly", "value")
	sdk.Info("Started Worker")
	sdk.Error("Activity error.", "Error", errors.New("x"))
	if seen.Len() != 0 {
		t.Errorf("%d lines at info", seen.Len())
	}
}

func TestTemporalFields(t *testing.T) {
	core, seen := observer.New(zapcore.DebugLevel)
	parent := TemporalLogger(zap.New(core))
	child := log.With(parent, "Namespace", "default", "TaskQueue", "waybill")
	child.Warn("x", "WorkflowID", "request/PHID-HWBR-1", "Attempt", 3, 42, "number", "Alone")
	parent.Warn("y")
	entries := seen.All()
	got := entries[0].ContextMap()
	want := map[string]any{
		"namespace": "default", "task_queue": "waybill", "workflow_id": "request/PHID-HWBR-1",
		"attempt": int64(3), "42": "number", "extra": "alone",
	}
	if len(got) != len(want) {
		t.Errorf("fields = %v", got)
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s = %v (%T), want %v", key, got[key], got[key], value)
		}
	}
	if len(entries[1].Context) != 0 {
		t.Errorf("With changed its parent: %v", entries[1].ContextMap())
	}
}

func TestSnakeCase(t *testing.T) {
	for in, want := range map[string]string{
		"WorkflowID": "workflow_id", "RunID": "run_id", "TaskQueue": "task_queue", "Attempt": "attempt",
		"HTTPStatus": "http_status", "already_snake": "already_snake", "Mixed_Case": "mixed_case",
		"": "", "A": "a", "workerID": "worker_id",
	} {
		if got := snakeCase(in); got != want {
			t.Errorf("snakeCase(%q) = %q, want %q", in, got, want)
		}
	}
}
