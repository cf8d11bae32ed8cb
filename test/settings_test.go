package acceptance

import (
	"context"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
	"waybill/test/scenario"
)

// setting is a variable (or a few that belong together) and what can be seen
// of it from outside.
type setting struct {
	values map[string]string
	// shows is called with a serve that runs with the values.
	shows func(t *testing.T, l lane)
}

// Every variable of the Herald lane has an effect that can be observed.
// WAYBILL_HERALD_DSN is what all other tests are about.
func TestEverySettingHasItsEffect(t *testing.T) {
	t.Parallel()
	lockServer := startLockServer(t)
	ca := scenario.NewAuthority(t, time.Now())
	for name, s := range map[string]setting{
		"WAYBILL_HERALD_NAMESPACE":         {map[string]string{"WAYBILL_HERALD_NAMESPACE": "elsewhere"}, locksOf("elsewhere")},
		"WAYBILL_HERALD_LOCK_DSN":          {map[string]string{"WAYBILL_HERALD_LOCK_DSN": lockServer.DSN("")}, locksAt(lockServer)},
		"WAYBILL_HERALD_TAKEOVER":          {map[string]string{"WAYBILL_HERALD_TAKEOVER": "external"}, externalTakeover},
		"WAYBILL_HERALD_ALLOW":             {map[string]string{"WAYBILL_HERALD_ALLOW": "127.0.0.1/32"}, onlyTheFirst},
		"WAYBILL_HERALD_DENY":              {map[string]string{"WAYBILL_HERALD_ALLOW": "", "WAYBILL_HERALD_DENY": "127.0.0.2/32"}, onlyTheFirst},
		"WAYBILL_HERALD_CA_FILE":           {map[string]string{"WAYBILL_HERALD_CA_FILE": ca.File(t)}, vouchedFor(ca)},
		"WAYBILL_HERALD_DELIVERY_TIMEOUT":  {map[string]string{"WAYBILL_HERALD_DELIVERY_TIMEOUT": "1s"}, secondsOfSilence},
		"WAYBILL_HERALD_CLAIM_LEASE":       {with(shortLease(), "WAYBILL_HERALD_CLAIM_LEASE", "12s"), lasts(12 * time.Second)},
		"WAYBILL_HERALD_WRITE_ALLOWANCE":   {with(shortLease(), "WAYBILL_HERALD_WRITE_ALLOWANCE", "3s"), lasts(9 * time.Second)},
		"WAYBILL_HERALD_RETRY_BACKOFF":     {map[string]string{"WAYBILL_HERALD_RETRY_BACKOFF": "6s"}, rests(6 * time.Second)},
		"WAYBILL_HERALD_BREAKER_THRESHOLD": {map[string]string{"WAYBILL_HERALD_BREAKER_THRESHOLD": "2"}, stopsAfterTwo},
		"WAYBILL_HERALD_BREAKER_WINDOW": {map[string]string{
			"WAYBILL_HERALD_BREAKER_THRESHOLD": "2", "WAYBILL_HERALD_BREAKER_WINDOW": "5s"}, goesOnAfter(5 * time.Second)},
		"WAYBILL_HERALD_MAX_SLOW":      {map[string]string{"WAYBILL_HERALD_MAX_SLOW": "2", "WAYBILL_HERALD_DELIVERY_TIMEOUT": "15s"}, atMostSlow(2)},
		"WAYBILL_HERALD_MAX_IN_FLIGHT": {map[string]string{"WAYBILL_HERALD_MAX_IN_FLIGHT": "1", "WAYBILL_HERALD_DELIVERY_TIMEOUT": "15s"}, atMostFast(1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.shows(t, newLane(t, s.values))
		})
	}
}

func with(settings map[string]string, name, value string) map[string]string {
	changed := maps.Clone(settings)
	changed[name] = value
	return changed
}

func startLockServer(t *testing.T) *devstack.MariaDB {
	t.Helper()
	stacktest.NeedsServers(t)
	m, err := devstack.StartMariaDB(t.Context(), devstack.MariaDBConfig{Dir: filepath.Join(t.TempDir(), "locks"), Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Kill(); _ = m.Stop(context.Background()) })
	return m
}

// sends delivers one row to a new hook and returns the hook.
func (l lane) sends(t *testing.T, name string) devstack.Hook {
	t.Helper()
	h := l.hook(t, "status200", name)
	await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "sent", "okay")
	return h
}

// locksOf: the lock's name is made of that namespace.
func locksOf(namespace string) func(*testing.T, lane) {
	return func(t *testing.T, l lane) {
		h := l.sends(t, "namespace")
		named := scenario.NewPhorgeWorker(t, &devstack.Phorge{DB: l.DB, Namespace: namespace})
		if own := scenario.NewPhorgeWorker(t, l.Phorge); !named.Held(t, h.PHID) || own.Held(t, h.PHID) {
			t.Errorf("lock of the set namespace held: %v; of the database's: %v", named.Held(t, h.PHID), own.Held(t, h.PHID))
		}
	}
}

// locksAt: locks are taken on that server and not on the rows' own.
func locksAt(m *devstack.MariaDB) func(*testing.T, lane) {
	return func(t *testing.T, l lane) {
		h := l.sends(t, "lock-server")
		there := scenario.NewPhorgeWorker(t, &devstack.Phorge{DB: stacktest.Open(t, m, ""), Namespace: l.Namespace})
		if here := scenario.NewPhorgeWorker(t, l.Phorge); !there.Held(t, h.PHID) || here.Held(t, h.PHID) {
			t.Errorf("lock held on the lock server: %v; beside the rows: %v", there.Held(t, h.PHID), here.Held(t, h.PHID))
		}
	}
}

// externalTakeover: ownership among Waybills uses the same locks.
func externalTakeover(t *testing.T, l lane) {
	h := l.sends(t, "takeover")
	if !scenario.NewPhorgeWorker(t, l.Phorge).Held(t, h.PHID) {
		t.Error("the hook's lock is free")
	}
}

// onlyTheFirst: 127.0.0.1 may be called, 127.0.0.2 may not.
func onlyTheFirst(t *testing.T, l lane) {
	l.sends(t, "first")
	second := hook(t, l.Site, strings.Replace(l.receiver.URL("status200", "second"), "127.0.0.1", "127.0.0.2", 1))
	if got := await(t, l.Site, queue(t, l.Site, second, l.object, never).PHID, "failed", "none"); ended(got) != hookError("uri") {
		t.Errorf("a denied address: %s", ended(got))
	}
}

// vouchedFor: the file's authority is trusted.
func vouchedFor(ca *scenario.Authority) func(*testing.T, lane) {
	return func(t *testing.T, l lane) {
		secure := scenario.NewReceiver(t, ca.Server(t), time.Now)
		await(t, l.Site, queue(t, l.Site, hook(t, l.Site, secure.URL("status200", "tls")), l.object, never).PHID, "sent", "okay")
	}
}

// secondsOfSilence: a silent receiver is given up on after one second.
func secondsOfSilence(t *testing.T, l lane) {
	r := queue(t, l.Site, l.hook(t, "hang", "timeout"), l.object, never)
	if got := await(t, l.Site, r.PHID, "failed", "fail"); ended(got) != timedOut {
		t.Errorf("row: %s", ended(got))
	}
	took, _ := l.serve.Log.Await(t, patience, 1, "attempt", r.PHID)[0]["took"].(float64)
	if took < 0.99 || took > 5 {
		t.Errorf("the attempt took %v s", took)
	}
}

// lasts: a claim of somebody else's, made just now, is respected that long.
func lasts(lease time.Duration) func(*testing.T, lane) {
	return func(t *testing.T, l lane) {
		h := l.sends(t, "lease")
		// Not queued until it is claimed, or the lane would be faster.
		claimed := insert(t, l.Site, devstack.Row{HookPHID: h.PHID, ObjectPHID: l.object, Properties: never, Age: time.Hour, Status: "held"})
		execSQL(t, l.Site, "UPDATE "+l.Database("herald")+".herald_webhookrequest SET status = 'queued', dateModified = UNIX_TIMESTAMP()"+
			" WHERE phid = ?", claimed.PHID)
		entered := time.Now()
		await(t, l.Site, claimed.PHID, "sent", "okay")
		got := l.receiver.Await(t, "lease", 2, patience)
		if waited := got[1].At.Sub(entered); waited < lease-time.Second || len(got) != 2 {
			t.Errorf("%d requests, the second %v after the claim", len(got), waited)
		}
		effective, _ := l.serve.Log.Find("herald lane running")[0]["lease"].(float64)
		if effective != lease.Seconds() {
			t.Errorf("effective lease %v s, want %v", effective, lease)
		}
	}
}

// rests: a failed row is tried again not before that.
func rests(backoff time.Duration) func(*testing.T, lane) {
	return func(t *testing.T, l lane) {
		queue(t, l.Site, l.hook(t, "status500", "backoff"), l.object, forever)
		got := l.receiver.Await(t, "backoff", 2, patience)
		if gap := got[1].At.Sub(got[0].At); gap < backoff {
			t.Errorf("the second attempt came after %v, the backoff is %v", gap, backoff)
		}
	}
}

// stopsAfterTwo: a third row is not sent.
func stopsAfterTwo(t *testing.T, l lane) {
	_, third := twoFailuresAndAThird(t, l)
	scenario.Never(t, 4*time.Second, "a third request", func() bool { return len(l.receiver.Case("breaker")) > 2 })
	if got := row(t, l.Site, third.PHID); got != third {
		t.Errorf("the third row changed: %+v", got)
	}
}

// goesOnAfter: the third row is sent when the window has slid.
func goesOnAfter(window time.Duration) func(*testing.T, lane) {
	return func(t *testing.T, l lane) {
		h, third := twoFailuresAndAThird(t, l)
		await(t, l.Site, third.PHID, "failed", "fail")
		got := l.receiver.Await(t, "breaker", 3, patience)
		// The window is counted in whole seconds of the database's clock.
		if gap := got[2].At.Sub(got[0].At); gap < window-time.Second {
			t.Errorf("the third request came %v after the first, the window is %v", gap, window)
		}
		for _, text := range []string{"breaker open", "breaker closed"} {
			if n := len(l.serve.Log.Await(t, patience, 1, text, h.PHID)); n != 1 {
				t.Errorf("%d lines %q, want one", n, text)
			}
		}
	}
}

func twoFailuresAndAThird(t *testing.T, l lane) (devstack.Hook, devstack.Row) {
	t.Helper()
	h := l.hook(t, "status500", "breaker")
	for range 2 {
		await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "failed", "fail")
	}
	return h, queue(t, l.Site, h, l.object, never)
}

// atMostSlow: of many receivers that nobody knows yet, that many are called at
// once; and one that answers is not kept waiting behind them.
func atMostSlow(most int) func(*testing.T, lane) {
	return func(t *testing.T, l lane) {
		fast := l.sends(t, "fast")
		gate := scenario.NewGate(t)
		for range 3 * most {
			queue(t, l.Site, hook(t, l.Site, gate.URL()), l.object, never)
		}
		scenario.Until(t, patience, "slow receivers are called", func() bool { return gate.Held() == most })
		await(t, l.Site, queue(t, l.Site, fast, l.object, never).PHID, "sent", "okay")
		scenario.Never(t, 2*time.Second, "more slow receivers at once", func() bool { return gate.Held() > most })
		if gate.Most() > most {
			t.Errorf("%d at once", gate.Most())
		}
	}
}

// atMostFast: of many receivers that have answered fast, that many are called
// at once.
func atMostFast(most int) func(*testing.T, lane) {
	return func(t *testing.T, l lane) {
		gate := scenario.NewGate(t)
		gate.Open(200)
		var hooks []devstack.Hook
		for range 4 * most {
			h := hook(t, l.Site, gate.URL())
			hooks = append(hooks, h)
			await(t, l.Site, queue(t, l.Site, h, l.object, never).PHID, "sent", "okay")
		}
		gate.Hold()
		for _, h := range hooks {
			queue(t, l.Site, h, l.object, never)
		}
		gate.AwaitCall(t)
		scenario.Never(t, 2*time.Second, "more fast receivers at once", func() bool { return gate.Most() > most })
	}
}

// The queue is looked at as often as the interval says: counted as statements
// of Waybill's own user.
func TestThePollIntervalHasItsEffect(t *testing.T) {
	t.Parallel()
	for interval, count := range map[string]func(perSecond float64) bool{
		"10ms": func(n float64) bool { return n > 30 },
		"30s":  func(n float64) bool { return n < 20 },
	} {
		t.Run(interval, func(t *testing.T) {
			t.Parallel()
			site := scenario.NewSite(t, &program)
			_, dsn := limitedUser(t, site, heraldRights(site)...)
			cfg := dsn(site.Database("herald"))
			user, _, _ := strings.Cut(cfg, ":")
			site.Serve(t, map[string]string{"WAYBILL_HERALD_DSN": cfg, "WAYBILL_HERALD_POLL_INTERVAL": interval})
			execSQL(t, site, "SET GLOBAL userstat = 1")
			const during = 4 * time.Second
			before := statements(t, site, user)
			scenario.Never(t, during, "", func() bool { return false }) // a rate needs its time
			if n := float64(statements(t, site, user)-before) / during.Seconds(); !count(n) {
				t.Errorf("%.1f statements a second on an empty queue", n)
			}
		})
	}
}

// statements is how many a database user has had answered (MariaDB's userstat).
func statements(t *testing.T, s *scenario.Site, user string) (n int64) {
	t.Helper()
	err := s.DB.QueryRowContext(t.Context(),
		"SELECT COALESCE(SUM(SELECT_COMMANDS), 0) FROM information_schema.USER_STATISTICS WHERE USER = ?", user).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Several wrong settings are reported together, each with its name and what
// would be right, and without a secret; the exit code is 2.
func TestWrongSettingsAreReportedTogether(t *testing.T) {
	t.Parallel()
	site := scenario.NewSite(t, &program)
	wrong := map[string]string{
		"WAYBILL_HERALD_DSN":               "waybill:marked-secret@tcp(127.0.0.1:3306)/phabricator",
		"WAYBILL_HERALD_POLL_INTERVAL":     "often",
		"WAYBILL_HERALD_DELIVERY_TIMEOUT":  "15",
		"WAYBILL_HERALD_RETRY_BACKOFF":     "1s",
		"WAYBILL_HERALD_CLAIM_LEASE":       "-3s",
		"WAYBILL_HERALD_WRITE_ALLOWANCE":   "0s",
		"WAYBILL_HERALD_BREAKER_THRESHOLD": "0",
		"WAYBILL_HERALD_BREAKER_WINDOW":    "300",
		"WAYBILL_HERALD_MAX_IN_FLIGHT":     "many",
		"WAYBILL_HERALD_MAX_SLOW":          "100000",
		"WAYBILL_HERALD_TAKEOVER":          "maybe",
		"WAYBILL_HERALD_LOCK_DSN":          "root:marked-secret@127.0.0.1/",
		"WAYBILL_HERALD_ALLOW":             "10.0.0.0/40",
		"WAYBILL_HERALD_DENY":              "intranet",
		"WAYBILL_HERALD_NAMESPACE":         "",
		"WAYBILL_HERALD_CA_FILE":           "/nowhere/ca.pem",
		"WAYBILL_LISTEN":                   "8160",
	}
	for _, role := range []string{"serve", "worker", "starter", "api", "config"} {
		_, stderr, code := site.Command(t, wrong, role)
		if code != 2 {
			t.Errorf("%s ended with %d", role, code)
		}
		for name, value := range wrong {
			if value != "" && !strings.Contains(stderr, name+":") {
				t.Errorf("%s: nothing about %s", role, name)
			}
		}
		if strings.Contains(stderr, "marked-secret") {
			t.Errorf("%s shows a password:\n%s", role, stderr)
		}
	}
	_, stderr, code := site.Command(t, map[string]string{"WAYBILL_HERALD_DSN": ""}, "serve")
	if code != 2 || !strings.Contains(stderr, "WAYBILL_HERALD_DSN") {
		t.Errorf("serve without a lane ended with %d: %s", code, stderr)
	}
}

// A variable with a typing mistake is named at the start, with the likely one.
func TestAMistypedVariableIsNamed(t *testing.T) {
	t.Parallel()
	site := scenario.NewSite(t, &program)
	serve := site.Serve(t, map[string]string{"WAYBILL_HERALD_POLL_INTERVALL": "10ms"})
	found := serve.Log.Find("configuration")
	if len(found) != 1 || !strings.Contains(found[0].Text("warning"), "did you mean WAYBILL_HERALD_POLL_INTERVAL?") {
		t.Errorf("warnings: %v", found)
	}
}
