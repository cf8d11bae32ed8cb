package acceptance

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
	"waybill/test/scenario"
)

// awaitUnready waits until /readyz says no with a reason that contains a word,
// and checks that reasons are sentences for strangers and that the process is
// alive all the same.
func awaitUnready(t *testing.T, s *scenario.Site, p *scenario.Process, word string) {
	t.Helper()
	var last scenario.Reply
	var answer struct{ Reasons []string }
	scenario.Until(t, patience, func() string { return "unready with a reason about " + word + ", last answer " + last.Body }, func() bool {
		last = p.Get(t, "/readyz", "")
		return last.Status == http.StatusServiceUnavailable && json.Unmarshal([]byte(last.Body), &answer) == nil &&
			strings.Contains(strings.Join(answer.Reasons, " "), word)
	})
	plain := regexp.MustCompile(`^[A-Z][A-Za-z ,'-]+\.?$`)
	for _, reason := range answer.Reasons {
		if !plain.MatchString(reason) || strings.Contains(reason, s.Namespace) || strings.Contains(reason, s.Ledger) {
			t.Errorf("reason %q", reason)
		}
	}
	if alive := p.Get(t, "/healthz", ""); alive.Status != http.StatusOK {
		t.Errorf("/healthz is %d meanwhile", alive.Status)
	}
}

// Started before the Phorge exists, Waybill says what it waits for, and goes
// to work by itself.
func TestStartedBeforeTheDatabaseExists(t *testing.T) {
	t.Parallel()
	site, receiver := scenario.NewSite(t, &program), scenario.NewReceiver(t, nil, time.Now)
	site.DropPhorge(t)
	serve := site.Run(t, nil, "serve")
	awaitUnready(t, site, serve, "Phorge")
	if got := serve.Get(t, "/api/webhook/stats", ""); got.Status != http.StatusServiceUnavailable || strings.Contains(got.Body, site.Namespace) {
		t.Errorf("stats without a database: %d %s", got.Status, got.Body)
	}
	site.CreatePhorge(t)
	serve.AwaitReady(t)
	r := queue(t, site, hook(t, site, receiver.URL("status200", "at-last")), task(t, site), never)
	await(t, site, r.PHID, "sent", "okay")
}

// ownServers starts servers that a test may stop.
func ownServers(t *testing.T) scenario.Servers {
	t.Helper()
	stacktest.NeedsServers(t)
	bin, err := devstack.FindTemporal(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mariadb, err := devstack.StartMariaDB(t.Context(), devstack.MariaDBConfig{Dir: filepath.Join(dir, "mariadb"), Ephemeral: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mariadb.Kill(); _ = mariadb.Stop(context.Background()) })
	temporal, err := devstack.StartTemporal(t.Context(), devstack.TemporalConfig{Bin: bin, Dir: filepath.Join(dir, "temporal")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { temporal.Kill(); _ = temporal.Stop(context.Background()) })
	return scenario.Servers{MariaDB: mariadb, Temporal: temporal}
}

// Everything that Waybill depends on may be missing at its start and go away
// under way. Nothing is lost, nothing is sent twice, and readiness tells.
func TestDependenciesComeAndGo(t *testing.T) {
	t.Parallel()
	on := ownServers(t)
	site, receiver := scenario.NewSiteOn(t, &program, on), scenario.NewReceiver(t, nil, time.Now)
	o := &outages{Site: site, on: on, receiver: receiver, hook: hook(t, site, receiver.URL("status200", "steady"))}
	settings := shortLease()
	settings["WAYBILL_HERALD_DELIVERY_TIMEOUT"] = "2s"

	on.Temporal.Kill()
	on.MariaDB.Kill()
	serve := site.Run(t, settings, "serve")
	awaitUnready(t, site, serve, "database")
	restartMariaDB(t, on)
	awaitUnready(t, site, serve, "Temporal")
	restartTemporal(t, on)
	serve.AwaitReady(t)
	o.load(t, 20)

	o.during(t, "Temporal is killed", func() {
		on.Temporal.Kill()
		o.enqueue(t, 10)
		awaitUnready(t, site, serve, "Temporal")
		restartTemporal(t, on)
	})
	o.during(t, "the database is stopped", func() {
		if err := on.MariaDB.Halt(t.Context()); err != nil {
			t.Error(err)
		}
		awaitUnready(t, site, serve, "database")
		restartMariaDB(t, on)
	})
	serve.AwaitReady(t)
	o.load(t, 20)
	if code := serve.Stop(t); code != 0 {
		t.Errorf("stop ended with %d", code)
	}
}

func restartMariaDB(t *testing.T, on scenario.Servers) {
	t.Helper()
	if err := on.MariaDB.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func restartTemporal(t *testing.T, on scenario.Servers) {
	t.Helper()
	if err := on.Temporal.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Temporal may lose everything it knew. The rows are the truth: what was asleep
// is tried again when it is due, pauses hold, and signals find their targets.
func TestLosingTemporalsStateLosesNothing(t *testing.T) {
	t.Parallel()
	on := ownServers(t)
	site, receiver := scenario.NewSiteOn(t, &program, on), scenario.NewReceiver(t, nil, time.Now)
	object := task(t, site)
	failing, paused := hook(t, site, receiver.URL("status500", "asleep")), hook(t, site, receiver.URL("status200", "paused"))
	serve := site.Serve(t, shortLease())
	awaitWorkflow(t, site, paused.PHID)
	tell(t, site, paused.PHID, "pause", `"kept"`)
	awaitPause(t, site, paused.PHID)
	asleep, held := queue(t, site, failing, object, forever), queue(t, site, paused, object, forever)
	await(t, site, asleep.PHID, "queued", "fail")
	on.Temporal.Kill()
	if err := on.Temporal.Wipe(); err != nil {
		t.Fatal(err)
	}
	if err := site.SetHookURI(t.Context(), failing.PHID, receiver.URL("status200", "asleep")); err != nil {
		t.Fatal(err)
	}
	restartTemporal(t, on)
	site.RegisterNamespace(t)
	await(t, site, asleep.PHID, "sent", "okay")
	if got := row(t, site, held.PHID); got != held || len(receiver.Case("paused")) > 0 {
		t.Errorf("a paused hook's row changed or was sent: %+v", got)
	}
	awaitWorkflow(t, site, paused.PHID)
	tell(t, site, paused.PHID, "resume", "")
	await(t, site, held.PHID, "sent", "okay")
	serve.AwaitReady(t)
}

// outages is a steady load on one hook whose rows are told apart by their
// objects.
type outages struct {
	*scenario.Site
	on       scenario.Servers
	receiver *scenario.Receiver
	hook     devstack.Hook
	rows     []devstack.Row
}

func (o *outages) enqueue(t *testing.T, n int) {
	t.Helper()
	for range n {
		o.rows = append(o.rows, queue(t, o.Site, o.hook, task(t, o.Site), forever))
	}
}

// load queues rows and waits for all of them.
func (o *outages) load(t *testing.T, n int) {
	t.Helper()
	o.enqueue(t, n)
	o.settled(t)
}

// during queues rows, lets something happen while they are being sent, and
// then wants each row sent, and sent once.
func (o *outages) during(t *testing.T, what string, happens func()) {
	t.Helper()
	o.enqueue(t, 40)
	o.receiver.Await(t, "steady", len(o.rows)-35, patience)
	happens()
	t.Logf("%s with %d of %d requests made", what, len(o.receiver.Case("steady")), len(o.rows))
	o.settled(t)
}

func (o *outages) settled(t *testing.T) {
	t.Helper()
	for _, r := range o.rows {
		await(t, o.Site, r.PHID, "sent", "okay")
	}
	for _, r := range o.rows {
		if n := o.about(r.ObjectPHID); n != 1 {
			t.Errorf("%d requests for the row %s", n, r.PHID)
		}
	}
}

func (o *outages) about(object string) (n int) {
	for _, r := range o.receiver.Case("steady") {
		if strings.Contains(string(r.Raw), object) {
			n++
		}
	}
	return n
}
