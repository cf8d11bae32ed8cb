package activities_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"

	"waybill/activities"
	"waybill/internal/herald"
)

const unprocessable = "request cannot be processed and stays in the queue as it is"

// The sweep looks at such rows for days; a person needs to read of each once.
func TestAnUnprocessableRowIsReportedOncePerVersion(t *testing.T) {
	w := newWorld(t)
	w.row(func(r *herald.Request) { r.Properties = []byte("no JSON") })
	report := func(want int) {
		t.Helper()
		if n, m := len(w.lines(unprocessable)), w.counts.of(activities.Untouched); n != want || m != want {
			t.Errorf("%d lines, counted %d times, want %d", n, m, want)
		}
	}
	for range 5 {
		w.claims(activities.Untouched)
	}
	report(1)
	line := w.lines(unprocessable)[0]
	if fields := line.ContextMap(); line.Level != zapcore.WarnLevel || fields["request"] != phid || fields["hook"] != hookPHID ||
		fields["version"] != start || fields["reason"] == "" {
		t.Errorf("line %v", line)
	}
	w.row(func(r *herald.Request) { r.Modified++ })
	for range 5 {
		w.claims(activities.Untouched)
	}
	report(2)
	// Another reason for the same version is no news either.
	w.rows.hook = nil
	w.claims(activities.Untouched)
	report(2)
	w.free()
	if n := len(w.gate.ends()); n != 11 {
		t.Errorf("the feed was told %d times, want each time", n)
	}
}

// keys are those of the line of an attempt, always all of them.
var keys = []string{
	"attempt", "error_code", "error_type", "fault", "hook", "request", "result", "stands", "state", "status", "took", "version", "write_error",
}

func TestAnAttemptIsOneLineWithFixedKeys(t *testing.T) {
	for _, tt := range sendCases() {
		t.Run(tt.name, func(t *testing.T) {
			w, res := tt.run(t)
			lines := w.lines("attempt")
			if len(lines) != 1 {
				t.Fatalf("%d lines", len(lines))
			}
			fields := lines[0].ContextMap()
			var got []string
			for k := range fields {
				got = append(got, k)
			}
			if slices.Sort(got); !slices.Equal(got, keys) {
				t.Errorf("keys %q\nwant %q", got, keys)
			}
			if fields["state"] != string(res.State) || fields["request"] != phid || fields["hook"] != hookPHID {
				t.Errorf("line %v", fields)
			}
			warns := res.State == activities.Unknown || res.State == activities.Unwritten || res.State == activities.Overtaken
			if got := lines[0].Level == zapcore.WarnLevel; got != warns {
				t.Errorf("level %s for %s", lines[0].Level, res.State)
			}
		})
	}
}

// Nothing that leaves the activities shows a key, a URI or what stands in them.
func TestNoSecretLeaves(t *testing.T) {
	secrets := []string{secretKey, secretUser, secretPath, "hooks.example.com", hex.EncodeToString([]byte(secretKey))}
	safe := func(t *testing.T, w *world, out ...any) {
		t.Helper()
		for _, l := range w.logs.All() {
			out = append(out, l.Message, l.ContextMap())
		}
		for _, e := range w.gate.ends() {
			out = append(out, e)
		}
		for _, v := range out {
			raw, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("%+v %s", v, raw)
			for _, s := range secrets {
				if strings.Contains(text, s) {
					t.Errorf("%q shows %q", text, s)
				}
			}
		}
	}
	for _, tt := range claimCases() {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.set(w)
			res, err := w.ask()
			safe(t, w, res, fmt.Sprint(err))
		})
	}
	for _, tt := range sendCases() {
		t.Run(tt.name, func(t *testing.T) {
			w, res := tt.run(t)
			safe(t, w, res)
		})
	}
	for _, bad := range []string{"ftp://" + secretUser + "@hooks.example.com/" + secretPath, uri + "\x01", "http://" + secretPath + " x"} {
		w := newWorld(t)
		w.rows.hook.URI = bad
		safe(t, w, w.claims(activities.Misconfigured))
	}
}
