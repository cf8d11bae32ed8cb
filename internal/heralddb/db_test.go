package heralddb_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

func noSecret(t *testing.T, err error, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		if err != nil && strings.Contains(err.Error(), s) {
			t.Errorf("%q shows %q", err, s)
		}
	}
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	good := heralddb.Config{DSN: "root:geheim@tcp(127.0.0.1:1)/x_herald", Namespace: "x", Clock: time.Now}
	for name, change := range map[string]func(*heralddb.Config){
		"unreadable DSN":             func(c *heralddb.Config) { c.DSN = "root:geheim@tcp(127.0.0.1" },
		"no clock":                   func(c *heralddb.Config) { c.Clock = nil },
		"no namespace":               func(c *heralddb.Config) { c.Namespace = "" },
		"namespace with a quote":     func(c *heralddb.Config) { c.Namespace = "a`b" },
		"namespace with a dot":       func(c *heralddb.Config) { c.Namespace = "a.b" },
		"namespace with a newline":   func(c *heralddb.Config) { c.Namespace = "ab\n" },
		"TLS that is not configured": func(c *heralddb.Config) { c.DSN += "?tls=geheim" },
	} {
		c := good
		change(&c)
		d, err := heralddb.Open(c)
		if err == nil {
			_ = d.Close()
			t.Errorf("%s: accepted", name)
		}
		noSecret(t, err, "geheim")
	}
	d, err := heralddb.Open(good)
	if err != nil {
		t.Fatalf("opening needs no server: %v", err)
	}
	defer func() { _ = d.Close() }()
	err = d.Ping(t.Context())
	if err == nil {
		t.Error("ping of nobody")
	}
	noSecret(t, err, "geheim")
}

// Started before the database: errors until it is there, then none, by the
// same pool.
func TestPingFollowsTheDatabase(t *testing.T) {
	m := stacktest.MariaDB(t)
	ns := stacktest.Name("t")
	d, err := heralddb.Open(heralddb.Config{DSN: m.DSN(ns + "_herald"), Namespace: ns, Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Ping(t.Context()); err == nil {
		t.Error("ping of a database that does not exist")
	}
	stacktest.Phorge(t, ns)
	if err := d.Ping(t.Context()); err != nil {
		t.Errorf("ping when it is there: %v", err)
	}
}

func TestEveryMethodReportsALostDatabase(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	f.exec("DROP TABLE " + f.table())
	f.exec("DROP TABLE `" + f.phorge.Database("herald") + "`.herald_webhook")
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Load":          func() error { _, err := d.Load(ctx, 1); return err },
		"Claim":         func() error { _, _, err := d.Claim(ctx, 1, 1, herald.Lock{}); return err },
		"Finish":        func() error { _, err := d.Finish(ctx, herald.ResultWrite{}); return err },
		"Newest":        func() error { _, err := d.Newest(ctx); return err },
		"Since":         func() error { _, err := d.Since(ctx, 1, 1); return err },
		"Heads":         func() error { _, err := d.Heads(ctx, "x", 1); return err },
		"Due":           func() error { _, err := d.Due(ctx, "x", 1); return err },
		"Waiting":       func() error { _, err := d.Waiting(ctx); return err },
		"Unchanged":     func() error { _, err := d.Unchanged(ctx, herald.Candidate{}); return err },
		"Hooks":         func() error { _, err := d.Hooks(ctx); return err },
		"Queued":        func() error { _, _, err := d.Queued(ctx, "x", 1); return err },
		"CountRequests": func() error { _, _, _, err := d.CountRequests(ctx); return err },
		"CountHooks":    func() error { _, _, err := d.CountHooks(ctx); return err },
		"Backlog":       func() error { _, _, err := d.Backlog(ctx); return err },
		"Silenced":      func() error { _, err := d.Silenced(ctx); return err },
		"Endings":       func() error { _, err := d.Endings(ctx, []uint64{1}); return err },
		"Ping":          func() error { return d.Ping(ctx) },
	} {
		if err := call(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := d.Object(cancelled, task, "x"); err == nil {
		t.Error("Object: no error")
	}
	if _, _, err := d.Transactions(cancelled, transactions, "x", []string{"y"}); err == nil {
		t.Error("Transactions: no error")
	}
}

// text has everything that quoting could get wrong.
const text = `{"retry":"forever","a":"\\ ' \" \u0000 ` + "` ? % _ ünï 🎉𝄞" + `","b":[1.0,{}]}`

// Whatever mode the server runs in and the operator's DSN asks for, text
// arrives byte for byte and claims are claims.
func TestForeignSettingsChangeNothing(t *testing.T) {
	f := newFixture(t)
	var before string
	f.must(f.phorge.DB.QueryRowContext(t.Context(), "SELECT @@GLOBAL.sql_mode").Scan(&before))
	defer f.exec("SET GLOBAL sql_mode = ?", before)
	for _, mode := range []string{
		"", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "NO_UNSIGNED_SUBTRACTION",
		"TRADITIONAL", "ORACLE", "PIPES_AS_CONCAT,IGNORE_SPACE,HIGH_NOT_PRECEDENCE,ONLY_FULL_GROUP_BY", "PAD_CHAR_TO_FULL_LENGTH",
	} {
		f.exec("SET GLOBAL sql_mode = ?", mode)
		for _, params := range []string{
			"", "clientFoundRows=true", "autocommit=0", "charset=latin1", "collation=utf8mb4_general_ci",
			"sql_mode='NO_BACKSLASH_ESCAPES'", "multiStatements=true", "parseTime=true&loc=Local", "interpolateParams=false",
		} {
			t.Run(mode+" "+params, func(t *testing.T) { f.delivers(t, f.open(f.config(f.dsn(params)))) })
		}
	}
}

func (f *fixture) delivers(t *testing.T, d *heralddb.DB) {
	t.Helper()
	r := f.insert(devstack.Row{Properties: text, ObjectPHID: "PHID-TASK-\\'"})
	s, err := d.Load(t.Context(), uint64(r.ID))
	f.must(err)
	if string(s.Request.Properties) != text || s.Request.ObjectPHID != r.ObjectPHID {
		t.Errorf("read %q", s.Request.Properties)
	}
	c, won, err := d.Claim(t.Context(), uint64(r.ID), r.Modified, herald.Lock{})
	if !won || err != nil || f.row(r.PHID).Modified != c.Version {
		t.Fatalf("claim %+v, won %v, %v, row %+v", c, won, err, f.row(r.PHID))
	}
	if _, again, err := d.Claim(t.Context(), uint64(r.ID), r.Modified, herald.Lock{}); again || err != nil {
		t.Errorf("the same claim again: won %v, %v", again, err)
	}
	w := result(t, c, verdicts()["to be retried"], text)
	if out := f.finish(d, w); out != herald.Written {
		t.Errorf("finish: %s", out)
	}
	if got := f.row(r.PHID); got.Properties != string(w.Properties) || got.LastResult != "fail" {
		t.Errorf("wrote %q\nwant  %q", got.Properties, w.Properties)
	}
	if out := f.finish(d, w); out != herald.Written {
		t.Errorf("finish again: %s", out)
	}
}
