package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"waybill/internal/devstack/stacktest"
	"waybill/internal/ledger"
)

// Whoever runs a command before `migrate`, or with the tables of an older
// version, is told so; whatever else is wrong is not taken for it.
func TestWhatMigrateWouldMakeIsToldFromOtherFaults(t *testing.T) {
	m := stacktest.MariaDB(t)
	pauses := func(l *ledger.Ledger) error { _, err := l.Pauses(t.Context()); return err }
	older, exec := migrated(t)
	if err := pauses(older); err != nil || ledger.Unprepared(err) {
		t.Errorf("migrated: %v", err)
	}
	exec("ALTER TABLE hook_pause DROP COLUMN released")
	empty, inside := migrated(t)
	inside("DROP TABLE hook_pause")
	wrong, err := ledger.Open("nobody:x@tcp(" + m.Addr() + ")/waybill")
	must(t, err)
	t.Cleanup(func() { _ = wrong.Close() })
	for name, tt := range map[string]struct {
		l    *ledger.Ledger
		want bool
	}{
		"no database":    {open(t, m.DSN(name(t))), true},
		"no column":      {older, true},
		"no table":       {empty, true},
		"wrong password": {wrong, false},
		"no server":      {open(t, "root@tcp(127.0.0.1:1)/waybill"), false},
	} {
		if err := pauses(tt.l); err == nil || ledger.Unprepared(err) != tt.want {
			t.Errorf("%s: unprepared is not %v: %v", name, tt.want, err)
		}
	}
	if ledger.Unprepared(errors.New("table away")) {
		t.Error("an error that is no server's")
	}
}

// Each of the tables is looked at, whichever version made them.
func TestPingMissesEveryTable(t *testing.T) {
	for _, table := range []string{"hook_pause", "hook_owner", "worker_session", "installation", "silence_evidence"} {
		l, exec := migrated(t)
		exec("DROP TABLE " + table)
		if err := l.Ping(t.Context()); !ledger.Unprepared(err) {
			t.Errorf("%s: %v", table, err)
		}
	}
}

// So are the columns that later versions added: without one nothing can be owned.
func TestPingMissesEveryAddedColumn(t *testing.T) {
	for table, column := range map[string]string{"hook_pause": "released", "hook_owner": "waits_until"} {
		l, exec := migrated(t)
		exec("ALTER TABLE " + table + " DROP COLUMN " + column)
		if err := l.Ping(t.Context()); !ledger.Unprepared(err) {
			t.Errorf("%s.%s: %v", table, column, err)
		}
	}
}

// An answer that breaks off at its second row is an error, and says what was asked.
func TestAnAnswerThatBreaksOffSaysWhatWasAsked(t *testing.T) {
	l, exec := migrated(t)
	exec("RENAME TABLE hook_pause TO pauses")
	exec("INSERT INTO pauses (hook_phid, paused_at, paused_by, reason, released) VALUES ('a', NOW(), '', '', 0), ('b', NOW(), '', '', 0)")
	exec("CREATE VIEW hook_pause AS SELECT hook_phid, paused_at, paused_by, released," +
		" IF(hook_phid = 'b', (SELECT 'x' UNION SELECT 'y'), reason) AS reason FROM pauses")
	if p, err := l.Pauses(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "list pauses: ") {
		t.Errorf("%v, %v", p, err)
	}
}
