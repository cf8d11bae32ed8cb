package heralddb_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

// The tables of a task, and one that no demo Phorge has.
var (
	task         = herald.Table{Database: "maniphest", Name: "maniphest_task"}
	transactions = herald.Table{Database: "maniphest", Name: "maniphest_transaction"}
	absent       = herald.Table{Database: "paste", Name: "paste"}
)

// hostile are PHIDs that would break out of badly quoted SQL.
var hostile = []string{
	"", "'", `\`, `\'`, `"`, "`", "') OR 1=1 -- ", "\x00", "\xff\xfe", "\xbf'", "?", "%", "\n\r\x1a",
	"PHID-TASK-🎉", "PHID-XACT-ＴASK", "PHID-TASK-" + string(make([]byte, 200)),
}

func TestObjectExistsOrNot(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	author, err := f.phorge.CreateUser(t.Context(), "somebody")
	f.must(err)
	phid, err := f.phorge.CreateTask(t.Context(), author, "a task")
	f.must(err)
	if k, err := d.Object(t.Context(), task, phid); k != herald.Exists || err != nil {
		t.Errorf("a task that is there: %v, %v", k, err)
	}
	for _, p := range append(hostile, phid+" ", phid[:20], author) {
		if k, err := d.Object(t.Context(), task, p); k != herald.Missing || err != nil {
			t.Errorf("%q: %v, %v", p, k, err)
		}
	}
}

// object is a task with n transactions, oldest first.
func (f *fixture) object(n int) (phid string, found []string) {
	f.Helper()
	author, err := f.phorge.CreateUser(f.Context(), devstack.RandomName(8))
	f.must(err)
	phid, err = f.phorge.CreateTask(f.Context(), author, "a task")
	f.must(err)
	found, err = f.phorge.AddTransactions(f.Context(), author, phid, n)
	f.must(err)
	return phid, found
}

func TestTransactionsNewestFirst(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	object, own := f.object(5)
	_, foreign := f.object(2)
	newest := slices.Clone(own)
	slices.Reverse(newest)
	for _, tt := range []struct {
		name      string
		ask, want []string
	}{
		{"oldest first", own, newest},
		{"newest first", newest, newest},
		{"mixed", []string{own[2], own[4], own[0]}, []string{own[4], own[2], own[0]}},
		{"duplicates", []string{own[1], own[1], own[3], own[1]}, []string{own[3], own[1]}},
		{"another object's", append(slices.Clone(foreign), own[0]), []string{own[0]}},
		{"none of them exists", []string{"PHID-XACT-TASK-nothing"}, nil},
		{"hostile ones among them", append(slices.Clone(hostile), own[3]), []string{own[3]}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, readable, err := d.Transactions(t.Context(), transactions, object, tt.ask)
			if err != nil || !readable || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, readable %v, %v\nwant %q", got, readable, err, tt.want)
			}
		})
	}
	for _, o := range hostile {
		if got, readable, err := d.Transactions(t.Context(), transactions, o, own); len(got) != 0 || !readable || err != nil {
			t.Errorf("object %q has %d transactions, readable %v, %v", o, len(got), readable, err)
		}
	}
}

// Thousands of transactions are asked for in parts, and still come in one order.
func TestManyTransactionsComeInOneOrder(t *testing.T) {
	f := newFixture(t)
	object, own := f.object(40)
	ask := make([]string, 0, 2500)
	for i := range 2500 {
		ask = append(ask, fmt.Sprintf("PHID-XACT-TASK-%015d", i))
	}
	// The oldest into the last part, the newest into the first.
	for i, phid := range own {
		ask[len(ask)-1-i*60] = phid
	}
	want := slices.Clone(own)
	slices.Reverse(want)
	got, readable, err := f.at(now).Transactions(t.Context(), transactions, object, ask)
	if err != nil || !readable || !slices.Equal(got, want) {
		t.Errorf("%d found, readable %v, %v", len(got), readable, err)
	}
}

func TestUnreadableTableIsToldOnce(t *testing.T) {
	f := newFixture(t)
	var told []string
	var clock atomic.Int64
	c := f.config(f.dsn(""))
	c.Unreadable = func(table string) { told = append(told, table) }
	c.Clock = func() time.Time { return time.Unix(clock.Load(), 0) }
	d := f.open(c)
	missing := func() {
		t.Helper()
		if k, err := d.Object(t.Context(), absent, "PHID-PSTE-x"); k != herald.Unknown || err != nil {
			t.Errorf("object: %v, %v", k, err)
		}
		if got, readable, err := d.Transactions(t.Context(), absent, "PHID-PSTE-x", []string{"p"}); got != nil || readable || err != nil {
			t.Errorf("transactions: %v, readable %v, %v", got, readable, err)
		}
	}
	missing()
	missing()
	clock.Add(3600) // asked again, still not there
	missing()
	if want := f.phorge.Namespace + "_paste.paste"; !slices.Equal(told, []string{want}) {
		t.Errorf("told %q, want %q once", told, want)
	}
	f.madeReadable(d, &clock)
}

// madeReadable installs the application: it is noticed when the rest is over.
func (f *fixture) madeReadable(d *heralddb.DB, clock *atomic.Int64) {
	f.Helper()
	name := "`" + f.phorge.Namespace + "_paste`"
	f.exec("CREATE DATABASE " + name)
	f.Cleanup(func() { _, _ = f.phorge.DB.Exec("DROP DATABASE " + name) })
	f.exec("CREATE TABLE " + name + ".paste (phid varbinary(64) NOT NULL PRIMARY KEY)")
	if k, err := d.Object(f.Context(), absent, "x"); k != herald.Unknown || err != nil {
		f.Errorf("asked too soon: %v, %v", k, err)
	}
	clock.Add(3600)
	if k, err := d.Object(f.Context(), absent, "x"); k != herald.Missing || err != nil {
		f.Errorf("after it was installed: %v, %v", k, err)
	}
	// Not the table we know: as good as unreadable.
	f.exec("ALTER TABLE " + name + ".paste CHANGE phid name varbinary(64)")
	if k, err := d.Object(f.Context(), absent, "x"); k != herald.Unknown || err != nil {
		f.Errorf("without its column: %v, %v", k, err)
	}
}
