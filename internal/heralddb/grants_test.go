package heralddb_test

import (
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
	"waybill/internal/herald"
)

// tableDenied is ER_TABLEACCESS_DENIED_ERROR.
const tableDenied = 1142

// user makes a user that may do only this on the herald database's tables.
func (f *fixture) user(grants map[string]string) *mysql.Config {
	f.Helper()
	name, password := devstack.RandomName(12), devstack.RandomName(16)
	account := "'" + name + "'@'127.0.0.1'"
	f.exec("CREATE USER " + account + " IDENTIFIED BY '" + password + "'")
	f.Cleanup(func() { _, _ = f.phorge.DB.Exec("DROP USER " + account) })
	for table, rights := range grants {
		f.exec("GRANT " + rights + " ON `" + f.phorge.Database("herald") + "`." + table + " TO " + account)
	}
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd = "tcp", stacktest.MariaDB(f).Addr(), name, password
	c.DBName = f.phorge.Database("herald")
	return c
}

func TestSelectOnBothTablesAndUpdateOnRequestsSuffice(t *testing.T) {
	f := newFixture(t)
	c := f.user(map[string]string{"herald_webhook": "SELECT", "herald_webhookrequest": "SELECT, UPDATE"})
	var told []string
	config := f.config(c.FormatDSN())
	config.Unreadable = func(table string) { told = append(told, table) }
	d := f.open(config)
	f.must(d.Ping(t.Context()))

	s, err := f.phorge.DB.QueryContext(t.Context(), "SHOW GRANTS FOR '"+c.User+"'@'127.0.0.1'")
	f.must(err)
	defer func() { _ = s.Close() }()
	for s.Next() {
		var line string
		f.must(s.Scan(&line))
		t.Log(line)
	}
	f.must(s.Err())

	r := f.insert(devstack.Row{})
	if s, err := d.Load(t.Context(), uint64(r.ID)); err != nil || s.Hook == nil {
		t.Fatalf("load: %v, %v", s.Hook, err)
	}
	claim := f.claim(d, r)
	if out := f.finish(d, result(t, claim, verdicts()["delivered"], r.Properties)); out != herald.Written {
		t.Errorf("finish: %s", out)
	}
	_, err = d.Heads(t.Context(), f.hook.PHID, 1)
	f.must(err)
	_, err = d.Due(t.Context(), f.hook.PHID, 1)
	f.must(err)
	_, err = d.Hooks(t.Context())
	f.must(err)
	object, own := f.object(1)
	if k, err := d.Object(t.Context(), task, object); k != herald.Unknown || err != nil {
		t.Errorf("an object behind no grant: %v, %v", k, err)
	}
	if _, readable, err := d.Transactions(t.Context(), transactions, object, own); readable || err != nil {
		t.Errorf("transactions behind no grant: readable %v, %v", readable, err)
	}
	if len(told) != 2 {
		t.Errorf("told %q, want both tables", told)
	}
}

func TestMissingGrantsAreErrors(t *testing.T) {
	f := newFixture(t)
	r := f.insert(devstack.Row{})
	blind := f.open(f.config(f.user(map[string]string{"herald_webhook": "SELECT"}).FormatDSN()))
	_, err := blind.Load(t.Context(), uint64(r.ID))
	denied(t, "load without SELECT", err)
	denied(t, "ping without SELECT", blind.Ping(t.Context()))

	reader := f.open(f.config(f.user(map[string]string{"herald_webhook": "SELECT", "herald_webhookrequest": "SELECT"}).FormatDSN()))
	_, won, err := reader.Claim(t.Context(), uint64(r.ID), r.Modified, herald.Lock{})
	denied(t, "claim without UPDATE", err)
	w := result(t, herald.Claim{ID: uint64(r.ID), Version: r.Modified}, verdicts()["failed"], r.Properties)
	_, err = reader.Finish(t.Context(), w)
	denied(t, "finish without UPDATE", err)
	if won || f.row(r.PHID) != r {
		t.Error("a refused statement changed the row")
	}
}

func denied(t *testing.T, what string, err error) {
	t.Helper()
	var my *mysql.MySQLError
	if !errors.As(err, &my) || my.Number != tableDenied {
		t.Errorf("%s: %v, want error %d", what, err, tableDenied)
	}
}
