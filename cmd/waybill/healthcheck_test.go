package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"waybill/api"
)

// noCounts are the numbers of a queue that nobody asks about here.
type noCounts struct{}

func (noCounts) CountRequests(context.Context) (queued, sent, failed int64, err error) {
	return 0, 0, 0, nil
}
func (noCounts) CountHooks(context.Context) (total, active int64, err error) { return 0, 0, nil }

// The probe asks the real HTTP interface: its paths are named in two places.
func TestHealthcheckSaysWhatTheInterfaceSays(t *testing.T) {
	const reason = "Temporal is not ready"
	for _, test := range []struct {
		name  string
		ready bool
		args  []string
		code  int
		says  string
	}{
		{"ready lives", true, nil, exitDone, ""},
		{"ready", true, []string{"--ready"}, exitDone, ""},
		{"unready lives", false, nil, exitDone, ""},
		{"unready", false, []string{"--ready"}, exitFailed, "answered 503: " + reason},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(api.New(api.Config{
				Counts: noCounts{}, Token: "the probe has none", Now: time.Now,
				Ready: func(context.Context) (bool, []string) { return test.ready, []string{reason} },
			}))
			defer server.Close()
			env := map[string]string{"WAYBILL_LISTEN": strings.TrimPrefix(server.URL, "http://")}
			got := execute(work{}, env, append([]string{"healthcheck"}, test.args...)...)
			if got.code != test.code || !strings.Contains(got.stderr, test.says) {
				t.Errorf("exit %d, %q", got.code, got.stderr)
			}
		})
	}
}

func TestHealthcheckFailsWhereNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got := execute(work{}, map[string]string{"WAYBILL_LISTEN": address}, "healthcheck")
	if got.code != exitFailed || !strings.Contains(got.stderr, "no answer") {
		t.Errorf("exit %d, %q", got.code, got.stderr)
	}
}

func TestHealthcheckRefusesAFaultyConfiguration(t *testing.T) {
	if got := execute(work{}, map[string]string{"WAYBILL_LISTEN": "nowhere"}, "healthcheck"); got.code != exitUsage {
		t.Errorf("exit %d, %q", got.code, got.stderr)
	}
}

// A redirect or another program's page is no sign of life.
func TestHealthcheckFollowsNoRedirect(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusFound))
	defer server.Close()
	env := map[string]string{"WAYBILL_LISTEN": strings.TrimPrefix(server.URL, "http://")}
	if got := execute(work{}, env, "healthcheck"); got.code != exitFailed || !strings.Contains(got.stderr, "answered 302") {
		t.Errorf("exit %d, %q", got.code, got.stderr)
	}
}

func TestNearby(t *testing.T) {
	for listen, want := range map[string]string{
		":8160": "127.0.0.1:8160", "0.0.0.0:8160": "127.0.0.1:8160", "[::]:8160": "[::1]:8160",
		"127.0.0.1:1": "127.0.0.1:1", "10.1.2.3:8160": "10.1.2.3:8160", "waybill:8160": "waybill:8160",
		"[fe80::1]:8160": "[fe80::1]:8160",
	} {
		if got := nearby(listen); got != want {
			t.Errorf("nearby(%q) = %q, want %q", listen, got, want)
		}
	}
}
