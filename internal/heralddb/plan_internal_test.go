package heralddb

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
)

// Sizes of the table whose plans are looked at: one hook holds most of it.
const (
	planRows  = 20_000
	planHooks = 20
)

// planned is a database with many finished rows, on one connection, so that the
// server's counters of that session are the statement's.
func planned(t *testing.T) (d *DB, hook string) {
	t.Helper()
	p := stacktest.Phorge(t, "")
	d, err := Open(Config{
		DSN: stacktest.MariaDB(t).DSN(p.Database("herald")), Namespace: p.Namespace, Clock: time.Now, MaxConns: 1,
		Lease: 30 * time.Second, Backoff: time.Minute, BreakerThreshold: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	hook = "PHID-HWBH-0"
	for from := 0; from < planRows; from += 1000 {
		var values []string
		for i := from; i < from+1000; i++ {
			values = append(values, planRow(i))
		}
		exec(t, p, "INSERT INTO `"+p.Database("herald")+"`.herald_webhookrequest (phid, webhookPHID, objectPHID, status,"+
			" properties, lastRequestResult, lastRequestEpoch, dateCreated, dateModified) VALUES "+strings.Join(values, ","))
	}
	exec(t, p, "ANALYZE TABLE `"+p.Database("herald")+"`.herald_webhookrequest")
	return d, hook
}

func exec(t *testing.T, p *devstack.Phorge, query string) {
	t.Helper()
	if _, err := p.DB.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

// planRow is mostly a delivered row, now and then one that waits.
func planRow(i int) string {
	hook := 0
	if i%4 == 0 {
		hook = i / 4 % planHooks
	}
	end := "'sent', '{}', 'okay', 1700000000"
	switch {
	case i%500 == 0:
		end = "'queued', '{}', 'none', 0"
	case i%500 == 1:
		end = "'queued', '{}', 'fail', 1700000000"
	case i%50 == 2:
		end = "'failed', '{}', 'fail', 1700000000"
	}
	return fmt.Sprintf("('PHID-HWBR-%d', 'PHID-HWBH-%d', 'PHID-TASK-x', %s, 1700000000, 1700000000)", i, hook, end)
}

func TestStatementsUseTheKeysThatPhorgeHas(t *testing.T) {
	d, hook := planned(t)
	for _, tt := range []struct {
		name, query string
		args        []any
		keys        string
		// most rows read by the storage engine, far below the table's size.
		most int
	}{
		{"newest", newestSQL, nil, "", 2},
		{"idle poll", sinceSQL, []any{planRows, 1000}, "PRIMARY", 2},
		{"poll", sinceSQL, []any{planRows - 10, 1000}, "PRIMARY", 12},
		{"heads", headsSQL, []any{30, hook, 32}, "key_ratelimit", 80},
		{"heads of an idle hook", headsSQL, []any{30, "PHID-HWBH-none", 32}, "key_ratelimit", 2},
		{"new heads", newHeadsSQL, []any{30, hook, planRows - 5000, 32}, "key_ratelimit PRIMARY", 80},
		{"due", dueSQL, []any{30, hook, 0, 60, 32}, "key_ratelimit", 500},
		{"new due", dueSQL, []any{30, hook, 1700000001, 60, 32}, "key_ratelimit", 2},
		{"the list of hooks", hooksSQL, nil, "key_phid", planHooks + 2},
		{"load", loadSQL, []any{9, 17}, "PRIMARY key_phid key_ratelimit", 20},
		{"claim", claimSQL, []any{17, 5}, "PRIMARY", 2},
		{"claim with a lock", claimSQL + lockClause, []any{17, 5, "x", 1}, "PRIMARY", 2},
		{"finish", finishSQL, []any{"sent", "okay", "{}", -1, -1, 17, 5}, "PRIMARY", 2},
		{"hooks with rows", waitingSQL, nil, "key_ratelimit", 3 * planHooks},
		{"silenced", silencedSQL, []any{planRows - lateIDs, 600}, "PRIMARY", lateIDs + 2},
		{"endings", endingsSQL + list([]uint64{3, 17, 4711, planRows}), nil, "PRIMARY", 10},
		{"unchanged", unchangedSQL, []any{17, true, 60}, "PRIMARY", 2},
		{"newest requests", listing(d, Filter{Limit: 50}), []any{30, 60, 50}, "PRIMARY", 52},
		{"request by phid", requestByPHID, []any{30, 60, "PHID-HWBR-17"}, "key_phid", 2},
		{"request by id", requestByID, []any{30, 60, 17}, "PRIMARY", 2},
		{"recent", recentSQL, []any{50}, "PRIMARY", 52},
	} {
		t.Run(tt.name, func(t *testing.T) {
			explained(t, d, tt.query, tt.args, tt.keys)
			if n := reads(t, d, tt.query, tt.args); n > tt.most {
				t.Errorf("read %d rows, want at most %d of %d", n, tt.most, planRows)
			}
		})
	}
}

// listing is the statement alone.
func listing(d *DB, f Filter) string {
	query, _ := d.listing(f)
	return query
}

// What waits for a hook is found without its finished rows. It is sorted, which
// is fair: it was asked for by a person, once.
func TestAHooksOpenRequestsAreFoundByTheKey(t *testing.T) {
	d, hook := planned(t)
	query, args := d.listing(Filter{HookPHID: hook, States: []State{StateQueued, StateResting, StateDue, StateClaimed}, Limit: 50})
	if n := reads(t, d, query, args); n > 1000 {
		t.Errorf("read %d rows, want at most 1000 of %d", n, planRows)
	}
}

// What hooks cost in a list does not grow with their rows: one pass over the
// table for the counts, and a few rows from the key for each hook.
func TestStandingsReadTheTableOnce(t *testing.T) {
	d, _ := planned(t)
	for i := range planHooks {
		if _, err := d.pool.ExecContext(t.Context(), `INSERT INTO herald_webhook
 (phid, name, webhookURI, viewPolicy, editPolicy, status, hmacKey, dateCreated, dateModified)
 VALUES (?, 'plan', '', '', '', 'enabled', '', 0, 0)`, fmt.Sprintf("PHID-HWBH-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n, most := reads(t, d, standingsSQL, []any{9}), planHooks*20; n > most {
		t.Errorf("the hooks' last results: read %d rows, want at most %d of %d", n, most, planRows)
	}
	if n, most := reads(t, d, queuesSQL, []any{30}), planRows+10*planHooks; n > most {
		t.Errorf("the queues: read %d rows, want at most %d", n, most)
	}
}

// A hook that was switched off keeps every event since as a failed row with
// result none. Looking for its new rows must not read them all.
func TestHeadsOfAHookWithManyFailedConfigurations(t *testing.T) {
	d, hook := planned(t)
	if _, err := d.pool.ExecContext(t.Context(),
		"UPDATE herald_webhookrequest SET status = 'failed', lastRequestResult = 'none', lastRequestEpoch = 0"); err != nil {
		t.Fatal(err)
	}
	if heads, err := d.Heads(t.Context(), hook, 32); err != nil || len(heads) != 0 {
		t.Fatalf("heads %v, %v", heads, err)
	}
	args := []any{30, hook, d.newHeads[hook].from, 32}
	explained(t, d, newHeadsSQL, args, "key_ratelimit PRIMARY")
	if n := reads(t, d, newHeadsSQL, args); n > lateIDs+2 {
		t.Errorf("read %d rows, want at most the newest %d", n, lateIDs)
	}
}

// explained checks that every table is reached by one of the keys and never
// from end to end.
func explained(t *testing.T, d *DB, query string, args []any, keys string) {
	t.Helper()
	rows, err := d.pool.QueryContext(t.Context(), "EXPLAIN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		cells := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		plan := map[string]string{}
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for i, c := range columns {
			plan[c] = cells[i].String
		}
		if plan["table"] == "" {
			continue // answered without a table
		}
		if plan["type"] == "ALL" || plan["key"] == "" || !strings.Contains(" "+keys+" ", " "+plan["key"]+" ") {
			t.Errorf("plan %v, want one of the keys %q", plan, keys)
		}
		if strings.Contains(plan["Extra"], "filesort") {
			t.Errorf("plan %v sorts", plan)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// reads runs a statement in a transaction that is rolled back, and counts what
// the storage engine read for it.
func reads(t *testing.T, d *DB, query string, args []any) (n int) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := d.pool.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, q := range []string{"START TRANSACTION", "FLUSH STATUS"} {
		if _, err := conn.ExecContext(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.ExecContext(ctx, query, args...); err != nil {
		t.Fatal(err)
	}
	var name string
	var value int
	rows, err := conn.QueryContext(ctx, "SHOW SESSION STATUS LIKE 'Handler_read%'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := rows.Scan(&name, &value); err != nil {
			t.Fatal(err)
		}
		n += value
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	_, err = conn.ExecContext(ctx, "ROLLBACK")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLockSessionIsDroppedByTheServerWhenSilent(t *testing.T) {
	p := stacktest.Phorge(t, "")
	s, err := OpenLockSession(t.Context(), stacktest.MariaDB(t).DSN(p.Database("herald")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var wait int64
	if err := s.query(t.Context(), "SELECT @@SESSION.wait_timeout", &wait); err != nil || wait != seconds(SessionTimeout) {
		t.Errorf("wait_timeout %d, %v, want %d", wait, err, seconds(SessionTimeout))
	}
}

func TestSecondsNeverShorten(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		0: 0, 1: 1, time.Second - 1: 1, time.Second: 1, time.Second + 1: 2, 3500 * time.Millisecond: 4, time.Minute: 60,
	} {
		if got := seconds(d); got != want {
			t.Errorf("%s: %d seconds, want %d", d, got, want)
		}
	}
}
