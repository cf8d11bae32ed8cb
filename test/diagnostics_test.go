package acceptance

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// apiToken protects the interface in these tests.
const apiToken = "0123456789abcdef-acceptance-token"

// The numbers are those of the tables, behind the token; liveness and
// readiness are open, and everything else is refused in one form.
func TestDiagnosticsSayWhatTheTablesSay(t *testing.T) {
	t.Parallel()
	l := newLane(t, map[string]string{"WAYBILL_TOKEN": apiToken})
	await(t, l.Site, queue(t, l.Site, l.hook(t, "status200", "counted"), l.object, never).PHID, "sent", "okay")
	await(t, l.Site, queue(t, l.Site, l.hook(t, "status500", "counted-failing"), l.object, never).PHID, "failed", "fail")
	disabled, err := l.CreateHook(t.Context(), devstack.Hook{Name: "off", URI: "http://127.0.0.1:1/", Status: "disabled"})
	if err != nil {
		t.Fatal(err)
	}
	queue(t, l.Site, disabled, l.object, `5`) // stays queued
	exact := map[string]string{
		"/api/webhook/stats": `{"data":{"activeWebhooks":2,"failedCount":1,"queuedCount":1,"sentCount":1}}`,
		"/api/webhook/hooks": `{"data":{"total":3}}`,
	}
	for path, want := range exact {
		var last scenario.Reply
		scenario.Until(t, patience, func() string { return path + " answers " + want + ", last " + last.Body }, func() bool {
			last = l.serve.Get(t, path, apiToken)
			return last.Status == http.StatusOK && strings.TrimSpace(last.Body) == want
		})
	}
	for _, path := range []string{"/api/webhook/stats", "/api/webhook/hooks", "/api/nothing", "/metrics"} {
		for _, token := range []string{"", "wrong", apiToken + "x", apiToken[1:]} {
			if got := l.serve.Get(t, path, token); got.Status != http.StatusUnauthorized || errorCode(got) != "unauthorized" {
				t.Errorf("%s with token %q: %d %s", path, token, got.Status, got.Body)
			}
		}
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/": 404, "/api/nothing": 404} {
		token := map[bool]string{true: apiToken}[want == 404]
		if got := l.serve.Get(t, path, token); got.Status != want || (want == 404 && errorCode(got) != "not_found") {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		got := scenario.Ask(t, method, l.serve.URL(t)+"/api/webhook/stats", apiToken)
		if got.Status != http.StatusMethodNotAllowed || got.Header.Get("Allow") == "" {
			t.Errorf("%s: %d %s", method, got.Status, got.Body)
		}
	}
}

func errorCode(r scenario.Reply) string {
	var body struct {
		Error struct{ Code, Message string }
	}
	if json.Unmarshal([]byte(r.Body), &body) != nil || body.Error.Message == "" {
		return ""
	}
	return body.Error.Code
}

// The exposition has the lane's series, with the values that the rows say.
func TestMetricsCountTheLane(t *testing.T) {
	t.Parallel()
	l := newLane(t, map[string]string{"WAYBILL_HERALD_BREAKER_THRESHOLD": "1"})
	await(t, l.Site, queue(t, l.Site, l.hook(t, "status200", "metered"), l.object, never).PHID, "sent", "okay")
	stopped := l.hook(t, "status500", "metered-failing")
	await(t, l.Site, queue(t, l.Site, stopped, l.object, never).PHID, "failed", "fail")
	queue(t, l.Site, stopped, l.object, never) // waits behind the open breaker
	await(t, l.Site, queue(t, l.Site, l.hook(t, "hang", "metered-hanging"), l.object, never).PHID, "failed", "fail")
	await(t, l.Site, queue(t, l.Site, hook(t, l.Site, "nonsense"), l.object, never).PHID, "failed", "none")
	await(t, l.Site, queue(t, l.Site, hook(t, l.Site, "http://127.0.0.1:1/"), l.object, never).PHID, "failed", "fail")
	queue(t, l.Site, l.hook(t, "status200", "metered-bad"), l.object, `5`)
	paused := l.hook(t, "status200", "metered-paused")
	awaitWorkflow(t, l.Site, paused.PHID)
	tell(t, l.Site, paused.PHID, "pause", `"metered"`)
	awaitPause(t, l.Site, paused.PHID)
	for series, want := range map[string]string{
		`waybill_herald_claims_total{result="won"}`:           "4",
		`waybill_herald_attempts_total{outcome="ok"}`:         "1",
		`waybill_herald_attempts_total{outcome="http_error"}`: "1",
		`waybill_herald_attempts_total{outcome="timeout"}`:    "1",
		`waybill_herald_attempts_total{outcome="transport"}`:  "1",
		`waybill_herald_attempts_total{outcome="config"}`:     "1",
		`waybill_herald_attempts_total{outcome="unknown"}`:    "0",
		`waybill_herald_attempt_duration_seconds_count`:       "4",
		`waybill_herald_unprocessable_total`:                  "1",
		`waybill_herald_hooks{state="paused"}`:                "1",
		`waybill_herald_hooks{state="breaker"}`:               "1",
		`waybill_herald_hooks{state="owned"}`:                 "7",
		`waybill_herald_queued`:                               "2",
		`waybill_herald_in_flight`:                            "0",
		`waybill_herald_write_backs_waiting`:                  "0",
	} {
		var got string
		scenario.Until(t, patience, func() string { return fmt.Sprintf("%s is %s, it is %q", series, want, got) }, func() bool {
			got = sample(l.serve.Get(t, "/metrics", "").Body, series)
			return got == want
		})
	}
	if text := l.serve.Get(t, "/metrics", "").Body; strings.Contains(text, "PHID-") {
		t.Error("a label names a hook or a row")
	}
}

// sample is the value of a series, whatever labels the exporter adds about
// itself.
func sample(exposition, series string) string {
	name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	pattern := regexp.MustCompile(`(?m)^` + name + `(?:\{(?:[^}\n]*,)?` + labels + `(?:,[^}\n]*)?\})? ([^ \n]+)$`)
	if found := pattern.FindStringSubmatch(exposition); found != nil {
		return found[1]
	}
	return ""
}

// Secrets are a hook's key, the userinfo of its URI, and the password of a
// data source. None is anywhere that is logged, shown or kept.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	site, receiver := scenario.NewSite(t, &program), scenario.NewReceiver(t, nil, time.Now)
	_, dsn := limitedUser(t, site, append(heraldRights(site), "SELECT ON "+site.Database("maniphest")+".*")...)
	object := task(t, site)
	settings := map[string]string{
		"WAYBILL_HERALD_DSN": dsn(site.Database("herald")), "WAYBILL_DSN": dsn(site.Ledger), "WAYBILL_LOG_LEVEL": "debug",
		"WAYBILL_HERALD_RETRY_BACKOFF": backoff.String(), "WAYBILL_HERALD_DELIVERY_TIMEOUT": "1s", "WAYBILL_TOKEN": apiToken,
	}
	exported := newCollector(t)
	maps.Copy(settings, tracing(exported.URL))
	serve := site.Serve(t, settings)
	userinfo := func(uri string) string {
		return strings.Replace(uri, "http://", "http://marked-user:marked-secret@", 1)
	}
	uris := []string{
		userinfo(receiver.URL("status200", "secret")) + "?token=marked-query", userinfo(receiver.URL("status500", "secret")),
		userinfo(receiver.URL("hang", "secret")), userinfo(receiver.URL("garbage", "secret")), userinfo("http://127.0.0.1:1/"),
		userinfo("http://nothing.invalid/"), "http://marked-user:marked-secret@[::1]:80:80/", "marked-secret",
	}
	var hooks []devstack.Hook
	var last devstack.Row
	for _, uri := range uris {
		h, err := site.CreateHook(t.Context(), devstack.Hook{URI: uri, Key: devstack.RandomName(32), Name: "secretive"})
		if err != nil {
			t.Fatal(err)
		}
		hooks = append(hooks, h)
		for _, properties := range []string{never, forever} {
			r := queue(t, site, h, object, properties)
			last = r
			scenario.Until(t, patience, "the row is tried", func() bool {
				now := row(t, site, r.PHID)
				return now.Status != "queued" || now.LastResult != "none"
			})
		}
	}
	if w := scenario.ParseWire(receiver.Case("secret")[0].Raw); w.Header["Authorization"] !=
		"Basic "+base64.StdEncoding.EncodeToString([]byte("marked-user:marked-secret")) {
		t.Errorf("the receiver got Authorization %q", w.Header["Authorization"])
	}
	texts := map[string]string{"/metrics": serve.Get(t, "/metrics", apiToken).Body}
	for _, path := range []string{"/api/webhook/stats", "/api/webhook/hooks", "/api/marked-secret", "/readyz", "/healthz"} {
		texts[path] = fmt.Sprint(serve.Get(t, path, apiToken))
	}
	for _, args := range [][]string{
		{"hooks", "list"}, {"hooks", "show", hooks[0].PHID}, {"requests", "list"}, {"requests", "show", last.PHID},
		{"doctor", "--watch", "0"}, {"config"}, {"migrate"},
	} {
		stdout, stderr, code := site.Command(t, settings, args...)
		if code != 0 {
			t.Errorf("waybill %v ended with %d: %s", args, code, stderr)
		}
		texts[fmt.Sprint("waybill ", args)] = stdout + stderr
	}
	for id, history := range site.Histories(t) {
		texts["history of "+id] = history + unpacked(history)
	}
	// What a crash prints is looked at too.
	serve.Signal(syscall.SIGQUIT)
	serve.Wait(t, patience)
	if !strings.Contains(serve.Log.String(), "goroutine ") {
		t.Error("no stacks are printed at SIGQUIT")
	}
	exported.mu.Lock()
	texts["traces"] = exported.raw.String()
	exported.mu.Unlock()
	texts["log"] = serve.Log.String() + serve.Out.String()
	secrets := []string{"marked-secret", "marked-user", "marked-query", apiToken}
	for _, name := range []string{settings["WAYBILL_HERALD_DSN"], settings["WAYBILL_DSN"]} {
		_, password, _ := strings.Cut(name[:strings.LastIndex(name, "@tcp(")], ":")
		secrets = append(secrets, password)
	}
	for _, h := range hooks {
		secrets = append(secrets, h.Key)
	}
	for where, text := range texts {
		if text == "" {
			t.Errorf("%s: nothing to look at", where)
		}
		for _, secret := range secrets {
			for form, shape := range shapes(secret) {
				if strings.Contains(text, shape) {
					t.Errorf("%s: the secret %q is there (%s)", where, secret, form)
				}
			}
		}
	}
	t.Logf("%d texts, %d secrets", len(texts), len(secrets))
}

// shapes are the forms in which a secret may hide.
func shapes(secret string) map[string]string {
	std := func(pad string) string { // independent of where in a longer text it stands
		encoded := base64.StdEncoding.EncodeToString([]byte(pad + secret))
		return strings.TrimRight(encoded, "=")[len(pad)*4/3+2 : len(strings.TrimRight(encoded, "="))-2]
	}
	return map[string]string{
		"plain": secret, "hex": hex.EncodeToString([]byte(secret)), "base64 0": std(""), "base64 1": std("x"), "base64 2": std("xx"),
		"escaped": url.QueryEscape(secret), "path": url.PathEscape(secret),
	}
}

// The search for secrets finds them, wherever they stand in an encoded text.
func TestSecretsWouldBeFound(t *testing.T) {
	const secret = "marked-secret"
	for _, before := range []string{"", "x", "xx", "xxx", `{"key":"`} {
		text := base64.StdEncoding.EncodeToString([]byte(before + secret + "after"))
		found := false
		for _, shape := range shapes(secret) {
			found = found || strings.Contains(text, shape)
		}
		if !found {
			t.Errorf("not found after %q", before)
		}
	}
}

// unpacked are the payloads of a history, decoded.
func unpacked(history string) string {
	var all strings.Builder
	for _, found := range regexp.MustCompile(`"data":\s*"([A-Za-z0-9+/=]+)"`).FindAllStringSubmatch(history, -1) {
		if raw, err := base64.StdEncoding.DecodeString(found[1]); err == nil {
			all.Write(raw)
			all.WriteByte('\n')
		}
	}
	return all.String()
}
