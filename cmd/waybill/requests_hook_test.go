package main

import (
	"strings"
	"testing"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
	"waybill/internal/ledger"
)

// That a hook has no such requests is an answer; that there is no such hook is an
// error, as for `hooks pause`. A hook that Phorge has lost is one while it has rows.
func TestRequestsOfAHookThatIsNoneAreAnError(t *testing.T) {
	phorge, maria := stacktest.Phorge(t, ""), stacktest.MariaDB(t)
	dsn, _ := stacktest.Database(t, "waybill")
	own, err := ledger.Open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Close() }()
	if _, err := own.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	idle, err := phorge.CreateHook(t.Context(), devstack.Hook{Name: "idle", URI: "http://127.0.0.1:1/"})
	if err != nil {
		t.Fatal(err)
	}
	lost, none := devstack.NewPHID("HWBH"), devstack.NewPHID("HWBH")
	if _, err := phorge.Insert(t.Context(), devstack.Row{HookPHID: lost, Status: "sent", LastResult: "okay"}); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"WAYBILL_HERALD_DSN": maria.DSN(phorge.Database("herald")), "WAYBILL_DSN": dsn, "WAYBILL_TEMPORAL_ADDRESS": "127.0.0.1:1",
	}
	for _, tt := range []struct {
		args         []string
		code         int
		stdout, said string
	}{
		{[]string{"requests", "list", "--hook", idle.PHID}, exitDone, "REQUEST", ""},
		{[]string{"requests", "list", "--hook", lost}, exitDone, lost, ""},
		{[]string{"requests", "list", "--hook", lost, "--state", "failed", "--json"}, exitDone, "[]", ""},
		{[]string{"requests", "list", "--hook", none}, exitFailed, "", none + ": no such hook; `waybill hooks list` shows the hooks"},
		{[]string{"requests", "list", "--hook", none, "--json"}, exitFailed, "", none + ": no such hook"},
		{[]string{"requests", "retry-now", "--hook", none}, exitFailed, "", none + ": no such hook"},
		{[]string{"requests", "retry-now", "--hook", idle.PHID}, exitFailed, "", "WAYBILL_TEMPORAL_ADDRESS"}, // it is looked for
		{[]string{"hooks", "show", none}, exitFailed, "", none + ": no such hook"},
		{[]string{"hooks", "pause", none}, exitFailed, "", none + ": no such hook"},
	} {
		got := execute(wired(), env, tt.args...)
		if got.code != tt.code || (tt.stdout == "") != (got.stdout == "") || !strings.Contains(got.stdout, tt.stdout) || !strings.Contains(got.stderr, tt.said) {
			t.Errorf("%v: %+v, want %+v", tt.args, got, tt)
		}
	}
}

// Whoever has mistyped a PHID is told what one looks like, before anything is asked.
func TestAPHIDThatIsNoHooksIsRefusedWithAnExample(t *testing.T) {
	for _, phid := range []string{"healthy", "PHID-HWBH-", "PHID-HWBH-4c734vhzpcdaadwnlu7", "PHID-HWBH-4c734vhzpcdaadwnlu733", "PHID-HWBR-4c734vhzpcdaadwnlu73", "PHID-HWBH-4C734VHZPCDAADWNLU73"} {
		for _, args := range [][]string{
			{"requests", "list", "--hook", phid}, {"requests", "retry-now", "--hook", phid}, {"hooks", "show", phid}, {"hooks", "pause", phid},
		} {
			var calls []string
			got := execute(recorded(&calls, nil), nil, args...)
			if got.code != exitUsage || len(calls) != 0 || !strings.Contains(got.stderr, `"`+phid+`" is not`) || !strings.Contains(got.stderr, "20 small letters or digits") {
				t.Errorf("%v: %+v, calls %q", args, got, calls)
			}
		}
	}
}
