package acceptance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"waybill/internal/devstack/stacktest"
	"waybill/test/scenario"
)

// limitedUser creates a database user with the given rights and its own
// password, and returns a function that makes DSNs for it.
func limitedUser(t *testing.T, s *scenario.Site, rights ...string) (user string, dsn func(database string) string) {
	t.Helper()
	name, password := stacktest.Name("u"), "a p@ss:word/"+stacktest.Name("x")
	user = fmt.Sprintf("'%s'@'127.0.0.1'", name)
	execSQL(t, s, "CREATE USER "+user+" IDENTIFIED BY '"+password+"'")
	t.Cleanup(func() {
		_, _ = stacktest.Open(t, s.MariaDB, "").ExecContext(context.Background(), "DROP USER "+user)
	})
	for _, right := range rights {
		execSQL(t, s, "GRANT "+right+" TO "+user)
	}
	return user, func(database string) string {
		cfg := mysql.NewConfig()
		cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.DBName = name, password, "tcp", s.MariaDB.Addr(), database
		return cfg.FormatDSN()
	}
}

// heraldRights are all that Waybill needs of a Phorge.
func heraldRights(s *scenario.Site) []string {
	herald := s.Database("herald")
	return []string{
		"SELECT ON " + herald + ".herald_webhook",
		"SELECT, UPDATE ON " + herald + ".herald_webhookrequest",
		"ALL ON " + s.Ledger + ".*", // Waybill's own
	}
}

// grants are a user's rights as the server says them.
func grants(t *testing.T, s *scenario.Site, user string) []string {
	t.Helper()
	rows, err := s.DB.QueryContext(t.Context(), "SHOW GRANTS FOR "+user)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		before, _, _ := strings.Cut(line, " IDENTIFIED BY") // MariaDB prints the password's digest
		all = append(all, before)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// SELECT on both Herald tables and UPDATE on the request table are enough:
// every kind of end is reached. Where the object's tables may not be read, the
// property's order is reversed, and the log says once which tables those are.
func TestTheSmallestGrantsSuffice(t *testing.T) {
	t.Parallel()
	deliverWith(t, nil, func(site *scenario.Site, sent, phids []string, serve *scenario.Process) {
		slices.Reverse(phids)
		if !slices.Equal(sent, phids) {
			t.Errorf("transactions sent %v, want the property reversed: %v", sent, phids)
		}
		if n := len(serve.Log.Find("table cannot be read")); n < 1 || n > 2 {
			t.Errorf("%d lines about tables that cannot be read, want one for each table", n)
		}
	})
}

// With SELECT on the object's tables as well, existence is checked and the
// order is that of the transactions' ids.
func TestObjectTablesAreReadWhereTheyMayBe(t *testing.T) {
	t.Parallel()
	optional := func(s *scenario.Site) []string {
		return []string{
			"SELECT ON " + s.Database("maniphest") + ".maniphest_task",
			"SELECT ON " + s.Database("maniphest") + ".maniphest_transaction",
		}
	}
	deliverWith(t, optional, func(_ *scenario.Site, sent, phids []string, serve *scenario.Process) {
		if want := []string{phids[1], phids[0]}; !slices.Equal(sent, want) {
			t.Errorf("transactions sent %v of %v, want %v", sent, phids, want)
		}
		if n := len(serve.Log.Find("table cannot be read")); n > 0 {
			t.Errorf("%d lines about tables that cannot be read", n)
		}
	})
}

// deliverWith runs a serve as a user with few rights through every kind of
// write, and hands over which transactions were sent of which were asked for.
func deliverWith(t *testing.T, optional func(*scenario.Site) []string,
	check func(site *scenario.Site, sent, phids []string, serve *scenario.Process)) {
	t.Helper()
	site, receiver := scenario.NewSite(t, &program), scenario.NewReceiver(t, nil, time.Now)
	rights := heraldRights(site)
	if optional != nil {
		rights = append(rights, optional(site)...)
	}
	user, dsn := limitedUser(t, site, rights...)
	t.Logf("the rights of Waybill's user:\n%s", strings.Join(grants(t, site, user), "\n"))
	object := task(t, site)
	phids, err := site.AddTransactions(t.Context(), "PHID-USER-aaaaaaaaaaaaaaaaaaaa", object, 2)
	if err != nil {
		t.Fatal(err)
	}
	phids = append(phids, "PHID-XACT-TASK-aaaaaaaaaaaaaaa") // never was
	serve := site.Serve(t, map[string]string{
		"WAYBILL_HERALD_DSN": dsn(site.Database("herald")), "WAYBILL_DSN": dsn(site.Ledger),
		"WAYBILL_HERALD_RETRY_BACKOFF": backoff.String(),
	})
	properties := fmt.Sprintf(`{"retry":"never","transactionPHIDs":{"%[1]s":"%[1]s","%[2]s":"%[2]s","%[3]s":"%[3]s"},"triggerPHIDs":[]}`,
		phids[0], phids[1], phids[2])
	good := queue(t, site, hook(t, site, receiver.URL("status200", "granted")), object, properties)
	await(t, site, good.PHID, "sent", "okay")
	failing := hook(t, site, receiver.URL("status500", "granted-failing"))
	await(t, site, queue(t, site, failing, object, never).PHID, "failed", "fail")
	await(t, site, queue(t, site, failing, object, forever).PHID, "queued", "fail")
	await(t, site, queue(t, site, hook(t, site, "nonsense"), object, forever).PHID, "failed", "none")
	receiver.Await(t, "granted-failing", 3, patience) // the second one again
	w := scenario.ParseWire(receiver.Await(t, "granted", 1, patience)[0].Raw)
	check(site, mentioned(w.Body, phids), phids, serve)
	if code := serve.Stop(t); code != 0 {
		t.Errorf("stop ended with %d", code)
	}
}
