package acceptance

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/herald"
	"waybill/test/scenario"
)

// finding is one of what `waybill doctor --json` prints.
type finding struct{ Check, Level, Text, Advice string }

// examined runs `waybill doctor` and returns what it found. Its exit code says
// whether there is a problem.
func examined(t *testing.T, s *scenario.Site, changes map[string]string, args ...string) (findings []finding) {
	t.Helper()
	stdout, stderr, code := s.Command(t, changes, append([]string{"doctor", "--json"}, args...)...)
	var d struct {
		Level    string
		Findings []finding
	}
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	if (code != 0) != (d.Level == "problem") || code > 1 {
		t.Errorf("exit code %d at level %s: %s", code, d.Level, stderr)
	}
	return d.Findings
}

// finds says that a finding is among them.
func finds(t *testing.T, name string, findings []finding, check, level, text string) {
	t.Helper()
	for _, f := range findings {
		if f.Check == check && f.Level == level && strings.Contains(f.Text+" "+f.Advice, text) {
			return
		}
	}
	t.Errorf("%s: no %s of %s saying %q in %+v", name, level, check, text, findings)
}

// tableSums are the checksums of both of Phorge's tables.
func tableSums(t *testing.T, s *scenario.Site) (sums [2]uint64) {
	t.Helper()
	for i, table := range []string{"herald_webhook", "herald_webhookrequest"} {
		var name string
		err := s.DB.QueryRowContext(t.Context(), "CHECKSUM TABLE "+s.Database("herald")+"."+table).Scan(&name, &sums[i])
		if err != nil {
			t.Fatal(err)
		}
	}
	return sums
}

// Before the handover nothing of Waybill's needs to be there. A Phorge as it should
// be has no problem, each check says something, and nothing is changed.
func TestDoctorFindsAHealthyPhorgeHealthy(t *testing.T) {
	t.Parallel()
	s, receiver := scenario.NewSite(t, &program), scenario.NewReceiver(t, nil, time.Now)
	h := hook(t, s, receiver.URL("status200", "healthy"))
	queue(t, s, h, task(t, s), never)
	before := tableSums(t, s)
	found := examined(t, s, nil, "--watch", "1s")
	levels := map[string]int{}
	var checks []string
	for _, f := range found {
		levels[f.Level]++
		checks = append(checks, f.Check)
		if f.Level == "warning" && f.Check != "waybill" || f.Level == "problem" {
			t.Errorf("%+v", f)
		}
	}
	want := []string{"addresses", "clock", "consumers", "grants", "index", "load", "locks", "phorge", "queue", "rows", "silence", "tables", "waybill"}
	if got := slices.Compact(slices.Sorted(slices.Values(checks))); !slices.Equal(got, want) {
		t.Errorf("checks %v, want %v", got, want)
	}
	finds(t, "no tables of Waybill's", found, "waybill", "warning", "waybill migrate")
	finds(t, "Temporal", found, "waybill", "ok", "Temporal answers")
	finds(t, "version", found, "phorge", "ok", "MariaDB ")
	finds(t, "the queue", found, "queue", "ok", "1 row waiting")
	finds(t, "a key", found, "index", "note", "bin/storage adjust drops it")
	if after := tableSums(t, s); after != before {
		t.Error("doctor changed Phorge's tables")
	}
	text, _, code := s.Command(t, nil, "doctor", "--watch", "0")
	if code != 0 || strings.Contains(text, "consumers") || !strings.Contains(text, "ok       queue      1 row waiting") {
		t.Errorf("code %d:\n%s", code, text)
	}
}

// Each trouble that a Phorge can have is found in one that has it.
func TestDoctorFindsWhatIsWrongWithAPhorge(t *testing.T) {
	t.Parallel()
	s, receiver := scenario.NewSite(t, &program), scenario.NewReceiver(t, nil, time.Now)
	object := task(t, s)
	requests, hooks := s.Database("herald")+".herald_webhookrequest", s.Database("herald")+".herald_webhook"
	good := hook(t, s, receiver.URL("status200", "good"))
	secret := "sEcReT"
	denied := hook(t, s, "http://user:"+secret+"@169.254.1.1/"+secret)
	malformed := hook(t, s, "gopher://"+secret)
	unresolved := hook(t, s, "http://"+strings.ToLower(secret)+".invalid/"+secret)
	broken := queue(t, s, good, object, `no JSON`)
	ahead := queue(t, s, good, object, never)
	strange := queue(t, s, good, object, never)
	orphan := queue(t, s, devstack.Hook{PHID: "PHID-HWBH-vanishedvanishedvanis"}, object, never)
	silent := queue(t, s, good, object, never)
	execSQL(t, s, "UPDATE "+requests+" SET lastRequestResult = 'fail', lastRequestEpoch = dateCreated + 400000 WHERE phid = ?", ahead.PHID)
	execSQL(t, s, "UPDATE "+requests+" SET status = 'waiting' WHERE phid = ?", strange.PHID)
	execSQL(t, s, "UPDATE "+requests+" SET dateCreated = dateCreated - 7200, dateModified = dateModified - 7200 WHERE phid = ?", broken.PHID)
	failedByPhorge(t, s, silent.PHID, "silent", nil)
	execSQL(t, s, "ALTER TABLE "+requests+" DROP KEY key_ratelimit, ADD KEY key_status (status, id)")
	execSQL(t, s, "ALTER TABLE "+hooks+" MODIFY name VARCHAR(64) NOT NULL")

	found := examined(t, s, nil, "--watch", "0")
	for _, want := range []finding{
		{"addresses", "warning", denied.PHID, "WAYBILL_HERALD_ALLOW"}, {"addresses", "warning", malformed.PHID, ""},
		{"addresses", "warning", unresolved.PHID, ""},
		{"rows", "warning", broken.PHID, ""}, {"rows", "warning", ahead.PHID, ""}, {"rows", "warning", strange.PHID, ""},
		{"rows", "warning", orphan.PHID, ""},
		{"queue", "warning", "the oldest for 2h", ""}, {"silence", "problem", "failed 1 row as silent", ""},
		{"index", "warning", "key_ratelimit is missing", ""}, {"index", "ok", "key on status", ""},
		{"tables", "problem", "herald_webhook.name is varchar(64), not varchar(128)", ""},
	} {
		finds(t, want.Text, found, want.Check, want.Level, want.Text)
	}
	for _, f := range found {
		if strings.Contains(strings.ToLower(f.Text+f.Advice), strings.ToLower(secret)) {
			t.Errorf("a hook's address is shown: %+v", f)
		}
	}
	if err := s.EnqueueMany(t.Context(), devstack.Edit{Hook: good.PHID, Object: object}, 600); err != nil {
		t.Fatal(err)
	}
	finds(t, "much polling", examined(t, s, nil, "--watch", "0"), "load", "warning", "times a second")
	finds(t, "no polling", examined(t, s, map[string]string{"WAYBILL_HERALD_TAKEOVER": "external"}, "--watch", "0"), "load", "ok", "external")
}

// What is away or not allowed is named, with what would be right.
func TestDoctorFindsWhatIsAwayOrNotAllowed(t *testing.T) {
	t.Parallel()
	s := scenario.NewSite(t, &program)
	queue(t, s, hook(t, s, "http://127.0.0.1:1/"), task(t, s), never)
	herald := s.Database("herald")
	_, reader := limitedUser(t, s, "SELECT ON "+herald+".herald_webhook", "SELECT ON "+herald+".herald_webhookrequest")
	found := examined(t, s, map[string]string{"WAYBILL_HERALD_DSN": reader(herald)}, "--watch", "0")
	finds(t, "no UPDATE", found, "grants", "problem", "GRANT SELECT, UPDATE ON `"+herald+"`.herald_webhookrequest")
	finds(t, "unreadable objects", found, "grants", "note", "maniphest_task")
	_, blind := limitedUser(t, s, "SELECT ON "+herald+".herald_webhook")
	finds(t, "no SELECT", examined(t, s, map[string]string{"WAYBILL_HERALD_DSN": blind(herald)}, "--watch", "0"),
		"tables", "problem", "no table herald_webhookrequest")
	away := map[string]string{
		"WAYBILL_TEMPORAL_ADDRESS": "127.0.0.1:1", "WAYBILL_HERALD_LOCK_DSN": "root@tcp(127.0.0.1:1)/",
	}
	found = examined(t, s, away, "--watch", "0")
	finds(t, "no Temporal", found, "waybill", "warning", "WAYBILL_TEMPORAL_ADDRESS")
	finds(t, "no lock server", found, "locks", "problem", "WAYBILL_HERALD_LOCK_DSN")
	finds(t, "no Phorge", examined(t, s, map[string]string{"WAYBILL_HERALD_DSN": "root@tcp(127.0.0.1:1)/" + herald}, "--watch", "0"),
		"phorge", "problem", "WAYBILL_HERALD_DSN")
	stdout, stderr, code := s.Command(t, map[string]string{"WAYBILL_HERALD_DSN": ""}, "doctor")
	if code != 2 || stdout != "" || !strings.Contains(stderr, "WAYBILL_HERALD_DSN") {
		t.Errorf("without a lane: %d, %q, %q", code, stdout, stderr)
	}
}

// Who holds which hook's lock is shown, and who else delivers is noticed: Phorge's
// own worker, a consumer that claims, and one that does not care for locks.
func TestDoctorNoticesOtherConsumers(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	mine, theirs := l.hook(t, "status200", "mine"), l.hook(t, "status200", "theirs")
	await(t, l.Site, queue(t, l.Site, mine, l.object, never).PHID, "sent", "okay")
	hooksCommand(t, l.Site, "release", theirs.PHID)
	phorge := scenario.NewPhorgeWorker(t, l.Phorge)
	scenario.Until(t, patience, "the released hook is free", func() bool { return !phorge.Held(t, theirs.PHID) })

	// A call of Phorge's that takes a while, and Waybill's own deliveries meanwhile.
	gate := scenario.NewGate(t)
	if err := l.SetHookURI(t.Context(), theirs.PHID, gate.URL()); err != nil {
		t.Fatal(err)
	}
	during := func(work func()) []finding {
		doctor := l.Run(t, nil, "doctor", "--json", "--watch", "10m")
		scenario.Until(t, patience, "doctor watches", func() bool { return strings.Contains(doctor.Log.String(), "Watching the queue") })
		work()
		doctor.Signal(syscall.SIGINT) // ends the watch, and what was seen is said
		doctor.Wait(t, patience)
		var d struct{ Findings []finding }
		if err := json.Unmarshal([]byte(doctor.Out.String()), &d); err != nil {
			t.Fatalf("%v\n%s", err, doctor.Out.String())
		}
		return d.Findings
	}
	waits := queue(t, l.Site, theirs, l.object, never)
	found := during(func() {
		turn := make(chan string, 1)
		go func() { turn <- string(phorge.Turn(t, waits.PHID)) }()
		gate.AwaitCall(t)
		await(t, l.Site, queue(t, l.Site, mine, l.object, never).PHID, "sent", "okay")
		scenario.Until(t, patience, "the lock is held", func() bool { return phorge.Held(t, theirs.PHID) })
		scenario.Never(t, 2*time.Second, "the lock is let go during the call", func() bool { return !phorge.Held(t, theirs.PHID) })
		gate.Answer(t, 200)
		if got := <-turn; got != string(scenario.Called) {
			t.Errorf("Phorge's turn: %s", got)
		}
	})
	finds(t, "Phorge's own worker", found, "consumers", "ok", "1 row delivered by somebody else")
	finds(t, "Waybill's locks", found, "locks", "ok", "1 hook owned by ")

	claims := queue(t, l.Site, theirs, l.object, never)
	requests := l.Database("herald") + ".herald_webhookrequest"
	found = during(func() {
		execSQL(t, l.Site, "UPDATE "+requests+" SET dateModified = dateModified + 1 WHERE phid = ?", claims.PHID)
	})
	finds(t, "a claim", found, "consumers", "warning", claims.PHID)

	hooksCommand(t, l.Site, "pause", mine.PHID)
	ignored := queue(t, l.Site, mine, l.object, never)
	lock := herald.LockName(l.Namespace, theirs.PHID)
	holder, err := l.DB.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close() }()
	if _, err := holder.ExecContext(t.Context(), "DO GET_LOCK(?, 0)", lock); err != nil {
		t.Fatal(err)
	}
	found = during(func() {
		execSQL(t, l.Site, "UPDATE "+requests+" SET status = 'sent', lastRequestResult = 'okay', lastRequestEpoch = UNIX_TIMESTAMP() WHERE phid = ?", ignored.PHID)
	})
	finds(t, "in spite of the lock", found, "consumers", "problem", ignored.PHID)
	finds(t, "somebody's lock", found, "locks", "note", theirs.PHID+" (connection ")
}
