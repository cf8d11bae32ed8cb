package main

import (
	"strings"
	"testing"

	"waybill/internal/devstack/stacktest"
)

// Before the first migration every command says which one makes the tables; what
// is away, or refuses, is named by its variable, without the password.
func TestCommandsSayWhatIsWrongWithWaybillsDatabase(t *testing.T) {
	phorge, maria := stacktest.Phorge(t, ""), stacktest.MariaDB(t)
	hook := "PHID-HWBH-aaaaaaaaaaaaaaaaaaaa"
	nothing := maria.DSN(stacktest.Name("waybill"))
	refused := "marked:marked-secret@tcp(" + maria.Addr() + ")/waybill"
	for _, tt := range []struct {
		dsn, want string
		args      []string
	}{
		{nothing, "run `waybill migrate`", []string{"hooks", "list"}},
		{nothing, "run `waybill migrate`", []string{"hooks", "pause", hook}},
		{nothing, "run `waybill migrate`", []string{"hooks", "pause", "--all"}},
		{nothing, "run `waybill migrate`", []string{"hooks", "release", "--all"}},
		{nothing, "run `waybill migrate`", []string{"hooks", "resume", "--all"}},
		{nothing, "run `waybill migrate`", []string{"requests", "show", "1"}},
		{refused, "Error 1045", []string{"hooks", "list"}},
		{refused, "Error 1045", []string{"hooks", "pause", "--all"}},
		{refused, "Error 1045", []string{"migrate"}},
	} {
		got := execute(wired(), map[string]string{
			"WAYBILL_HERALD_DSN": maria.DSN(phorge.Database("herald")), "WAYBILL_DSN": tt.dsn,
		}, tt.args...)
		if got.code != exitFailed || got.stdout != "" || !strings.Contains(got.stderr, tt.want) ||
			!strings.Contains(got.stderr, "WAYBILL_DSN") || strings.Contains(got.stderr, "marked-secret") ||
			strings.Contains(got.stderr, "Error 1049") {
			t.Errorf("%v: %+v, want %q", tt.args, got, tt.want)
		}
	}
}

// The database is ready then; what is missing is named.
func TestMigrateNamesATemporalThatIsAway(t *testing.T) {
	maria := stacktest.MariaDB(t)
	dsn, _ := stacktest.Database(t, "waybill")
	got := execute(wired(), map[string]string{
		"WAYBILL_HERALD_DSN": maria.DSN("x_herald"), "WAYBILL_DSN": dsn, "WAYBILL_TEMPORAL_ADDRESS": "127.0.0.1:1",
	}, "migrate")
	if got.code != exitFailed || !strings.Contains(got.stdout, "up to date") ||
		!strings.Contains(got.stderr, "WAYBILL_TEMPORAL_ADDRESS is 127.0.0.1:1") {
		t.Errorf("%+v", got)
	}
}
