package heralddb_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

func TestMain(m *testing.M) { stacktest.Main(m) }

// The rules of these tests. now is where their database's clock stands still:
// sessions opened by at have it as their `timestamp`.
const (
	now       = int64(1_800_000_000)
	lease     = int64(30)
	backoff   = int64(60)
	threshold = 10
	maxUint32 = int64(4294967295)
)

// fixture is a Phorge of a test's own with one hook.
type fixture struct {
	*testing.T
	phorge *devstack.Phorge
	hook   devstack.Hook
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, phorge: stacktest.Phorge(t, "")}
	f.hook = f.newHook("tests")
	return f
}

func (f *fixture) newHook(name string) devstack.Hook {
	f.Helper()
	h, err := f.phorge.CreateHook(f.Context(), devstack.Hook{Name: name, URI: "http://127.0.0.1:1/x"})
	f.must(err)
	return h
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) exec(query string, args ...any) {
	f.Helper()
	_, err := f.phorge.DB.ExecContext(f.Context(), query, args...)
	f.must(err)
}

// table is the request table's qualified name.
func (f *fixture) table() string {
	return "`" + f.phorge.Database("herald") + "`.herald_webhookrequest"
}

// dsn is that of the herald database, with parameters of the driver.
func (f *fixture) dsn(params string) string {
	f.Helper()
	return stacktest.MariaDB(f).DSN(f.phorge.Database("herald")) + "?" + params
}

func (f *fixture) config(dsn string) heralddb.Config {
	return heralddb.Config{
		DSN: dsn, Namespace: f.phorge.Namespace, BreakerThreshold: threshold, Clock: time.Now,
		Lease: time.Duration(lease) * time.Second, Backoff: time.Duration(backoff) * time.Second,
	}
}

func (f *fixture) open(c heralddb.Config) *heralddb.DB {
	f.Helper()
	d, err := heralddb.Open(c)
	f.must(err)
	f.Cleanup(func() { _ = d.Close() })
	return d
}

// at opens the database with its clock stopped at a moment.
func (f *fixture) at(moment int64) *heralddb.DB {
	f.Helper()
	return f.open(f.config(f.dsn("timestamp=" + strconv.FormatInt(moment, 10))))
}

// insert writes a row of the fixture's hook; Created and Modified default to now.
func (f *fixture) insert(r devstack.Row) devstack.Row {
	f.Helper()
	if r.HookPHID == "" {
		r.HookPHID = f.hook.PHID
	}
	if r.ObjectPHID == "" {
		r.ObjectPHID = "PHID-TASK-aaaaaaaaaaaaaaaaaaaa"
	}
	if r.Properties == "" {
		r.Properties = `{"retry":"forever"}`
	}
	if r.Created == 0 {
		r.Created = now
	}
	if r.Modified == 0 {
		r.Modified = r.Created
	}
	stored, err := f.phorge.Insert(f.Context(), r)
	f.must(err)
	return stored
}

func (f *fixture) row(phid string) devstack.Row {
	f.Helper()
	r, err := f.phorge.Row(f.Context(), phid)
	f.must(err)
	return r
}

// claim wins a claim without a lock.
func (f *fixture) claim(d *heralddb.DB, r devstack.Row) herald.Claim {
	f.Helper()
	c, won, err := d.Claim(f.Context(), uint64(r.ID), r.Modified, herald.Lock{})
	f.must(err)
	if !won {
		f.Fatalf("claim of an unclaimed row was not won: %+v", r)
	}
	return c
}

func (f *fixture) finish(d *heralddb.DB, w herald.ResultWrite) herald.WriteOutcome {
	f.Helper()
	out, err := d.Finish(f.Context(), w)
	f.must(err)
	return out
}

// verdicts are one of each kind, by name.
func verdicts() map[string]herald.Verdict {
	return map[string]herald.Verdict{
		"delivered":     herald.Decide(herald.Answer{HTTPStatus: 200}, true),
		"failed":        herald.Decide(herald.Answer{HTTPStatus: 500}, false),
		"to be retried": herald.Decide(herald.Answer{HTTPStatus: 500}, true),
		"timeout":       herald.Decide(herald.Answer{Timeout: true, Curl: herald.CurlTimeout}, true),
		"misconfigured": herald.HookFailure(herald.HookURI),
	}
}

// result is a verdict as activities write it.
func result(t *testing.T, c herald.Claim, v herald.Verdict, properties string) herald.ResultWrite {
	t.Helper()
	p, err := herald.ParseProperties([]byte(properties))
	if err != nil {
		t.Fatal(err)
	}
	w := herald.ResultWrite{Claim: c, Verdict: v, Properties: p.WithError(v.ErrorType, v.Code)}
	if v.Completed {
		w.Epoch = herald.EpochNow
	}
	return w
}

// eventually polls a condition: the server acts on its own time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); !ok(); {
		select {
		case <-ctx.Done():
			t.Fatalf("not within a minute: %s", what)
		case <-tick.C:
		}
	}
}

func sorted[T any](m map[string]T) []string {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
