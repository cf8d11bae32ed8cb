package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"waybill/internal/config"
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

// A server that hangs costs seconds and is said in words; a change that it was
// given may have been made.
func TestADatabaseThatHangsIsSaid(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	phorge, maria := stacktest.Phorge(t, ""), stacktest.MariaDB(t)
	hung := "u:marked-secret@tcp(" + silent.Addr().String() + ")/waybill_herald?readTimeout=100ms"
	fine := maria.DSN(phorge.Database("herald"))
	const unsure = "may or may not have been made, `waybill hooks list` shows it"
	for _, tt := range []struct {
		herald, want string
		args         []string
	}{
		{fine, "WAYBILL_DSN is", []string{"hooks", "list"}},
		{fine, unsure, []string{"hooks", "pause", "--all"}},
		{hung, "WAYBILL_HERALD_DSN is", []string{"requests", "list"}},
	} {
		got := execute(wired(), map[string]string{"WAYBILL_HERALD_DSN": tt.herald, "WAYBILL_DSN": strings.Replace(hung, "_herald", "", 1)}, tt.args...)
		if got.code != exitFailed || !strings.Contains(got.stderr, tt.want) || !strings.Contains(got.stderr, "it does not answer") ||
			strings.Contains(got.stderr, "invalid connection") || strings.Contains(got.stderr, "marked-secret") {
			t.Errorf("%v: %+v, want %q", tt.args, got, tt.want)
		}
	}
}

// Somebody waits for a command: seconds are enough, unless the operator says otherwise.
func TestCommandsWaitSecondsForADatabase(t *testing.T) {
	const dsn = "u@tcp(127.0.0.1:3306)/waybill"
	for params, want := range map[string][2]time.Duration{
		"":                                {5 * time.Second, 5 * time.Second},
		"?readTimeout=1m":                 {time.Minute, 5 * time.Second},
		"?readTimeout=1m&writeTimeout=2m": {time.Minute, 2 * time.Minute},
	} {
		c, err := config.Load(func(name string) string { return map[string]string{"WAYBILL_DSN": dsn + params}[name] })
		if err != nil {
			t.Fatal(err)
		}
		got, err := mysql.ParseDSN(soon(c.Ledger))
		if err != nil || got.ReadTimeout != want[0] || got.WriteTimeout != want[1] {
			t.Errorf("%q: %v, %v", params, got, err)
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
