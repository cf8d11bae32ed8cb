package acceptance

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// asked runs a command that must succeed, and returns what it prints.
func asked(t *testing.T, l lane, changes map[string]string, args ...string) string {
	t.Helper()
	stdout, stderr, code := l.Command(t, changes, args...)
	if code != 0 {
		t.Fatalf("waybill %v ended with %d: %s%s", args, code, stdout, stderr)
	}
	return stdout
}

// decoded is asked with --json, in a type of the test's own: the names are what
// programs rely on. Numbers stay numbers, or they do not decode.
func decoded[T any](t *testing.T, l lane, changes map[string]string, args ...string) (v T) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(asked(t, l, changes, append(args, "--json")...)))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("waybill %v --json: %v", args, err)
	}
	return v
}

type shownResult struct {
	Result string     `json:"result"`
	At     *time.Time `json:"at"`
	Type   string     `json:"error_type"`
	Code   string     `json:"error_code"`
	Text   string     `json:"text"`
}

type shownHook struct {
	PHID     string       `json:"phid"`
	Name     string       `json:"name"`
	Status   string       `json:"status"`
	State    string       `json:"state"`
	Queued   int          `json:"queued"`
	InFlight int          `json:"in_flight"`
	Oldest   *time.Time   `json:"oldest_queued_at"`
	Last     *shownResult `json:"last_result"`
	Breaker  struct {
		Open  bool       `json:"open"`
		Until *time.Time `json:"until"`
	} `json:"breaker"`
	Pause *struct {
		Kind     string    `json:"kind"`
		By       string    `json:"by"`
		Reason   string    `json:"reason"`
		At       time.Time `json:"at"`
		AllHooks bool      `json:"all_hooks"`
	} `json:"pause"`
	Owner *string    `json:"owner"`
	Waits *time.Time `json:"waits_until"`
}

type shownRequest struct {
	PHID    string       `json:"phid"`
	ID      int          `json:"id"`
	Hook    string       `json:"hook"`
	Object  string       `json:"object"`
	State   string       `json:"state"`
	Status  string       `json:"status"`
	Created time.Time    `json:"created_at"`
	Last    *shownResult `json:"last_result"`
	Next    *time.Time   `json:"next_attempt_at"`
}

type shownPage struct {
	shownRequest
	Retry        string   `json:"retry"`
	Test         bool     `json:"test"`
	Silent       bool     `json:"silent"`
	Secure       bool     `json:"secure"`
	Transactions []string `json:"transactions"`
	Triggers     []string `json:"triggers"`
	HookName     string   `json:"hook_name"`
	HookStatus   string   `json:"hook_status"`
	Owner        *string  `json:"owner"`
	Outlook      string   `json:"outlook"`
	Workflow     struct {
		ID      string  `json:"id"`
		Away    *string `json:"away"`
		Open    bool    `json:"open"`
		Details *string `json:"details"`
		Runs    []struct {
			RunID    string     `json:"run_id"`
			Status   string     `json:"status"`
			Started  time.Time  `json:"started_at"`
			Closed   *time.Time `json:"closed_at"`
			Outcome  string     `json:"outcome"`
			Attempts int        `json:"attempts"`
			Reason   string     `json:"reason"`
		} `json:"runs"`
	} `json:"workflow"`
}

// Each hook is shown as it stands, to people and to programs: who holds it, what
// waits, how the last attempt ended.
func TestHooksAreShownAsTheyStand(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"WAYBILL_HERALD_BREAKER_THRESHOLD": "2", "WAYBILL_HERALD_RETRY_BACKOFF": "60s", "WAYBILL_HERALD_DELIVERY_TIMEOUT": "60s"}
	l := newLane(t, settings)
	well, failing, hanging := l.hook(t, "status200", "well"), l.hook(t, "status503", "failing"), l.hook(t, "hang", "hanging")
	paused, broken := l.hook(t, "status200", "paused"), l.hook(t, "status200", "broken")
	disabled, err := l.CreateHook(t.Context(), devstack.Hook{Name: "日本語", URI: "http://127.0.0.1:1/", Status: "disabled"})
	if err != nil {
		t.Fatal(err)
	}
	awaitWorkflow(t, l.Site, paused.PHID)
	hooksCommand(t, l.Site, "pause", paused.PHID, "--by", "ada", "--reason", "certificate\texpired")
	waits := queue(t, l.Site, paused, l.object, forever)
	execSQL(t, l.Site, "INSERT INTO "+l.Database("herald")+".herald_webhookrequest (phid, webhookPHID, objectPHID, status, properties,"+
		" lastRequestResult, lastRequestEpoch, dateCreated, dateModified) SELECT CONCAT('PHID-HWBR-', n), ?, '', 'failed', '{}', 'fail',"+
		" UNIX_TIMESTAMP(), 1, 1 FROM (SELECT 1 n UNION SELECT 2) two", broken.PHID)
	queue(t, l.Site, devstack.Hook{PHID: "PHID-HWBH-vanishedvanishedvani"}, l.object, never)
	await(t, l.Site, queue(t, l.Site, well, l.object, never).PHID, "sent", "okay")
	await(t, l.Site, queue(t, l.Site, failing, l.object, forever).PHID, "queued", "fail")
	queue(t, l.Site, hanging, l.object, forever)
	l.receiver.Await(t, "hanging", 1, patience)

	hooks := map[string]shownHook{}
	for _, h := range decoded[[]shownHook](t, l, settings, "hooks", "list") {
		hooks[h.PHID] = h
	}
	for phid, state := range map[string]string{
		well.PHID: "delivering", failing.PHID: "delivering", hanging.PHID: "delivering", paused.PHID: "paused",
		broken.PHID: "breaker", disabled.PHID: "disabled", "PHID-HWBH-vanishedvanishedvani": "gone",
	} {
		if hooks[phid].State != state {
			t.Errorf("%s is %q, want %q: %+v", phid, hooks[phid].State, state, hooks[phid])
		}
	}
	if h := hooks[well.PHID]; h.Queued != 0 || h.Oldest != nil || h.Last == nil || h.Last.Result != "okay" || h.Owner == nil || h.Breaker.Open || h.Pause != nil {
		t.Errorf("well %+v", h)
	}
	if h := hooks[failing.PHID]; h.Queued != 1 || h.Oldest == nil || h.Last == nil || h.Last.Code != "503" || h.Last.Text != "HTTP status 503" || h.Last.At == nil {
		t.Errorf("failing %+v", h)
	}
	if h := hooks[hanging.PHID]; h.Queued != 1 || h.InFlight != 1 {
		t.Errorf("hanging %+v", h)
	}
	if h := hooks[paused.PHID]; h.Pause == nil || h.Pause.By != "ada" || h.Pause.Reason != "certificate\texpired" || h.Pause.AllHooks || h.Queued != 1 ||
		h.Oldest == nil || h.Oldest.Unix() != waits.Created {
		t.Errorf("paused %+v", h)
	}
	if h := hooks[broken.PHID]; !h.Breaker.Open || h.Breaker.Until == nil {
		t.Errorf("broken %+v", h)
	}
	for phid, want := range map[string]string{
		paused.PHID: "paused by ada: certificate?expired", disabled.PHID: "日本語", well.PHID: "okay, ", broken.PHID: "open until ",
	} {
		if line := listed(t, l.Site, phid); phid != broken.PHID && !strings.Contains(line, want) {
			t.Errorf("the line %q lacks %q", line, want)
		}
		if text := asked(t, l, settings, "hooks", "show", phid); !strings.Contains(text, want) {
			t.Errorf("hooks show lacks %q:\n%s", want, text)
		}
	}
	if one := decoded[shownHook](t, l, settings, "hooks", "show", disabled.PHID); one.PHID != disabled.PHID || one.Name != "日本語" {
		t.Errorf("one hook %+v", one)
	}
	if _, stderr, code := l.Command(t, settings, "hooks", "show", "PHID-HWBH-nonenonenonenonenone"); code != 1 || !strings.Contains(stderr, "no such hook") {
		t.Errorf("a hook that is none: %d, %s", code, stderr)
	}
}

// A request's story from its row and its runs: it rests, is tried at once on
// somebody's word, is delivered, and then there is nothing left to retry.
func TestARequestIsShownAndRetried(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"WAYBILL_HERALD_RETRY_BACKOFF": "1h"}
	l := newLane(t, settings)
	h := l.hook(t, "status503", "story")
	r := queue(t, l.Site, h, l.object, `{"retry":"forever","transactionPHIDs":["PHID-XACT-TASK-aaaa"],"triggerPHIDs":[],"silent":true,"token":"marked-secret"}`)
	await(t, l.Site, r.PHID, "queued", "fail")
	var page shownPage
	scenario.Until(t, patience, "the open workflow says that it rests", func() bool {
		page = decoded[shownPage](t, l, settings, "requests", "show", r.PHID)
		return page.Workflow.Details != nil && strings.Contains(*page.Workflow.Details, "retrying")
	})
	if page.State != "resting" || page.Last == nil || page.Last.Code != "503" || page.Next == nil || page.Retry != "forever" || !page.Silent ||
		len(page.Transactions) != 1 || !page.Workflow.Open || page.Owner == nil || !strings.Contains(page.Outlook, "retry-now") {
		t.Errorf("resting: %+v", page)
	}
	text := asked(t, l, settings, "requests", "show", r.PHID)
	if !strings.Contains(text, "resting") || strings.Contains(text, "marked-secret") || strings.Contains(text, l.receiver.URL("status503", "story")) {
		t.Errorf("shown:\n%s", text)
	}
	if err := l.SetHookURI(t.Context(), h.PHID, l.receiver.URL("status200", "story")); err != nil {
		t.Fatal(err)
	}
	if said := asked(t, l, settings, "requests", "retry-now", r.PHID); !strings.Contains(said, "Told: it is tried as soon as it is its turn.") {
		t.Errorf("said %q", said)
	}
	await(t, l.Site, r.PHID, "sent", "okay")
	scenario.Until(t, patience, func() string { return "the delivered run is listed" }, func() bool {
		page = decoded[shownPage](t, l, settings, "requests", "show", r.PHID)
		return !page.Workflow.Open && len(page.Workflow.Runs) == 1 && page.Workflow.Runs[0].Outcome == "delivered"
	})
	if page.State != "sent" || page.Workflow.Runs[0].Attempts != 2 || page.Outlook != "Nothing: it was delivered." || page.Next != nil {
		t.Errorf("sent: %+v", page)
	}
	final := queue(t, l.Site, l.hook(t, "status503", "final"), l.object, never)
	await(t, l.Site, final.PHID, "failed", "fail")
	for phid, want := range map[string]string{
		r.PHID: "it was delivered", final.PHID: "not put back into the queue", "PHID-HWBR-none": "no such request",
	} {
		stdout, stderr, code := l.Command(t, settings, "requests", "retry-now", phid)
		if code != 1 || !strings.Contains(stdout, want) || stderr == "" {
			t.Errorf("retry-now of %s: %d, %q, %q", phid, code, stdout, stderr)
		}
	}
	if got := row(t, l.Site, final.PHID); got.Status != "failed" {
		t.Errorf("a failed row was put back: %+v", got)
	}
}

// Without a workflow to tell, the answer says what holds the request; a whole
// hook is told at once, and what is not there is no failure then.
func TestRetryNowSaysWhatHoldsARequest(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"WAYBILL_HERALD_RETRY_BACKOFF": "1h"}
	l := newLane(t, settings)
	h, quiet := l.hook(t, "status503", "held"), l.hook(t, "status200", "quiet")
	r := queue(t, l.Site, h, l.object, forever)
	await(t, l.Site, r.PHID, "queued", "fail")
	told := asked(t, l, settings, "requests", "retry-now", "--hook", h.PHID)
	l.receiver.Await(t, "held", 2, patience)
	if !strings.Contains(told, r.PHID+": Told") {
		t.Errorf("said %q", told)
	}
	if said := asked(t, l, settings, "requests", "retry-now", "--hook", quiet.PHID); !strings.Contains(said, "No request of "+quiet.PHID) {
		t.Errorf("said %q", said)
	}
	for _, verb := range []string{"list", "retry-now"} {
		_, stderr, code := l.Command(t, settings, "requests", verb, "--hook", "PHID-HWBH-mistypedmistypedmist")
		if code != 1 || !strings.Contains(stderr, "no such hook") {
			t.Errorf("%s of a hook that does not exist: %d, %q", verb, code, stderr)
		}
	}
	awaitWorkflow(t, l.Site, quiet.PHID)
	hooksCommand(t, l.Site, "pause", quiet.PHID, "--by", "ada", "--reason", "lunch")
	waits := queue(t, l.Site, quiet, l.object, forever)
	stdout, _, code := l.Command(t, settings, "requests", "retry-now", waits.PHID)
	if code != 1 || !strings.Contains(stdout, "paused by ada: lunch") {
		t.Errorf("%d, %q", code, stdout)
	}
	requests := decoded[[]shownRequest](t, l, settings, "requests", "list", "--hook", quiet.PHID, "--state", "queued")
	if len(requests) != 1 || requests[0].PHID != waits.PHID || requests[0].ID != int(waits.ID) || requests[0].Last != nil {
		t.Errorf("listed %+v", requests)
	}
	if table := asked(t, l, settings, "requests", "list", "--limit", "1"); len(strings.Split(strings.TrimSpace(table), "\n")) != 2 || !strings.Contains(table, waits.PHID) {
		t.Errorf("the newest:\n%s", table)
	}
}

// What is away is named by the variable that leads there, without a secret; a
// row is shown without Temporal too.
func TestCommandsNameWhatIsAway(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	r := queue(t, l.Site, l.hook(t, "status200", "away"), l.object, never)
	await(t, l.Site, r.PHID, "sent", "okay")
	nowhere := map[string]string{
		"WAYBILL_TEMPORAL_ADDRESS": "127.0.0.1:1",
		"WAYBILL_DSN":              "waybill:marked-secret@tcp(127.0.0.1:1)/waybill",
		"WAYBILL_HERALD_DSN":       "waybill:marked-secret@tcp(127.0.0.1:1)/" + l.Database("herald"),
	}
	away := func(variable string) map[string]string {
		changes := maps.Clone(nowhere)
		maps.DeleteFunc(changes, func(name, _ string) bool { return name != variable })
		return changes
	}
	page := decoded[shownPage](t, l, away("WAYBILL_TEMPORAL_ADDRESS"), "requests", "show", r.PHID)
	if page.State != "sent" || page.Workflow.Away == nil || !strings.Contains(*page.Workflow.Away, "WAYBILL_TEMPORAL_ADDRESS") {
		t.Errorf("%+v", page)
	}
	for variable, commands := range map[string][][]string{
		"WAYBILL_TEMPORAL_ADDRESS": {{"requests", "retry-now", r.PHID}},
		"WAYBILL_DSN":              {{"hooks", "list"}, {"requests", "show", r.PHID}},
		"WAYBILL_HERALD_DSN":       {{"hooks", "list"}, {"requests", "list"}, {"requests", "show", r.PHID}, {"requests", "retry-now", r.PHID}},
	} {
		for _, args := range commands {
			stdout, stderr, code := l.Command(t, away(variable), args...)
			if code != 1 || stdout != "" || !strings.Contains(stderr, variable+" is ") || strings.Contains(stderr, "marked-secret") {
				t.Errorf("%s away, %v: %d, %q, %q", variable, args, code, stdout, stderr)
			}
		}
	}
}
