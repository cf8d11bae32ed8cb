package acceptance

import (
	"database/sql"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
	"waybill/test/scenario"
)

// lockUser creates a user without any right on the lock server. It returns what
// the server says that it may, and a DSN with its password.
func lockUser(t *testing.T, m *devstack.MariaDB) (rights []string, dsn string) {
	t.Helper()
	db := stacktest.Open(t, m, "")
	const user = "'locker'@'127.0.0.1'"
	if _, err := db.ExecContext(t.Context(), "CREATE USER "+user+" IDENTIFIED BY 'marked-secret'"); err != nil {
		t.Fatal(err)
	}
	rows, err := db.QueryContext(t.Context(), "SHOW GRANTS FOR "+user)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		line, _, _ = strings.Cut(line, " IDENTIFIED BY")
		rights = append(rights, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr = "locker", "marked-secret", "tcp", m.Addr()
	return rights, cfg.FormatDSN()
}

// playerAt is Phorge's worker with its lock connection on the lock server and
// its rows on the site's.
type playerAt struct {
	locks, rows *scenario.PhorgeWorker
	site        *scenario.Site
}

func newPlayerAt(t *testing.T, s *scenario.Site, lockDB *sql.DB) playerAt {
	t.Helper()
	return playerAt{
		locks: scenario.NewPhorgeWorker(t, &devstack.Phorge{DB: lockDB, Namespace: s.Namespace}),
		rows:  scenario.NewPhorgeWorker(t, s.Phorge), site: s,
	}
}

// turn asks for the lock where Phorge does, and then delivers with its own.
func (p playerAt) turn(t *testing.T, r devstack.Row) scenario.Turn {
	t.Helper()
	if row(t, p.site, r.PHID).Status != "queued" {
		return scenario.Archived
	}
	if !p.locks.Lock(t, r.HookPHID) {
		return scenario.Yielded
	}
	defer p.locks.Unlock(t, r.HookPHID)
	return p.rows.Turn(t, r.PHID)
}

// Phorge's locks may live on another server than its Herald tables. Waybill
// takes them there, as a user without any right, and claims without looking at
// them; a Phorge that asks there yields. While that server is away nothing is
// sent and readiness says why; it comes back by itself.
func TestLocksOnAServerOfTheirOwn(t *testing.T) {
	t.Parallel()
	lockServer := startLockServer(t)
	rights, dsn := lockUser(t, lockServer)
	t.Logf("the rights of Waybill's user on the lock server:\n%s", strings.Join(rights, "\n"))
	if len(rights) != 1 || !strings.HasPrefix(rights[0], "GRANT USAGE ON *.*") {
		t.Errorf("the user has rights: %q", rights)
	}
	l := newLane(t, map[string]string{"WAYBILL_HERALD_LOCK_DSN": dsn})
	h := l.hook(t, "status200", "apart")
	first := queue(t, l.Site, h, l.object, never)
	await(t, l.Site, first.PHID, "sent", "okay")

	phorge := newPlayerAt(t, l.Site, stacktest.Open(t, lockServer, ""))
	if there, here := phorge.locks.Held(t, h.PHID), phorge.rows.Held(t, h.PHID); !there || here {
		t.Errorf("lock held on the lock server: %t; beside the rows: %t", there, here)
	}
	gate := scenario.NewGate(t)
	held := hook(t, l.Site, gate.URL())
	underWay := queue(t, l.Site, held, l.object, never)
	gate.AwaitCall(t)
	if turn := phorge.turn(t, underWay); turn != scenario.Yielded {
		t.Errorf("Phorge %s a row that Waybill is sending", turn)
	}
	gate.Answer(t, 200)
	await(t, l.Site, underWay.PHID, "sent", "okay")

	// Away: a server that hangs is the worse way to be away.
	if err := lockServer.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitUnready(t, l.Site, l.serve, "The locks of hooks cannot be held")
	while := queue(t, l.Site, h, l.object, never)
	scenario.Never(t, backoff, "a row is sent without a lock", func() bool { return row(t, l.Site, while.PHID) != while })
	if out, stderr, code := l.Command(t, map[string]string{"WAYBILL_HERALD_LOCK_DSN": dsn}, "hooks", "list"); code != 0 || !strings.Contains(out, h.PHID) {
		t.Errorf("hooks list beside a lock server that is away ended with %d: %s%s", code, out, stderr)
	}
	if err := lockServer.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await(t, l.Site, while.PHID, "sent", "okay")
	l.serve.AwaitReady(t)
	if n := len(l.receiver.Case("apart")); n != 2 {
		t.Errorf("%d calls for two rows", n)
	}
	if strings.Contains(l.serve.Log.String(), "marked-secret") {
		t.Error("the log shows the password of the lock server")
	}
}

// A lock server that does not let Waybill in is reported by the variable that
// names it, in the log and without its password; nothing is sent.
func TestALockServerThatRefusesIsNamed(t *testing.T) {
	t.Parallel()
	site := scenario.NewSite(t, &program)
	h := hook(t, site, "http://127.0.0.1:1/")
	r := queue(t, site, h, task(t, site), never)
	for name, dsn := range map[string]string{
		"nobody there":   "locker:marked-secret@tcp(127.0.0.1:1)/",
		"wrong password": fmt.Sprintf("root:marked-secret@tcp(%s)/", site.MariaDB.Addr()),
	} {
		serve := site.Run(t, map[string]string{"WAYBILL_HERALD_LOCK_DSN": dsn}, "serve")
		scenario.Until(t, patience, name+": the log names the variable", func() bool {
			return strings.Contains(serve.Log.String(), "WAYBILL_HERALD_LOCK_DSN")
		})
		scenario.Never(t, 2*time.Second, name+": the row is touched", func() bool { return row(t, site, r.PHID) != r })
		if strings.Contains(serve.Log.String(), "marked-secret") {
			t.Errorf("%s: the log shows the password", name)
		}
		serve.Kill()
	}
}
