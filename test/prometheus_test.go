package acceptance

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"waybill/test/scenario"
)

// prometheus scrapes a process of Waybill every second and applies the alert rules
// of the repository.
type prometheus struct{ url string }

func startPrometheus(t *testing.T, target string) prometheus {
	t.Helper()
	needsPromtool(t)
	server, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("needs prometheus (Debian: package prometheus)")
	}
	rules, err := filepath.Abs("../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: waybill, static_configs: [{targets: [%q]}]}]\n", rules, target)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	scenario.Start(t, server, nil,
		"--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	return prometheus{"http://" + address}
}

func needsPromtool(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("needs promtool (Debian: package prometheus)")
	}
}

// query asks as an operator does, with promtool.
func (p prometheus) query(t *testing.T, expr string) (answer string, ok bool) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "promtool", "query", "instant", p.url, expr).CombinedOutput()
	return strings.TrimSpace(string(out)), err == nil
}

// dashboardQueries are those of all panels, as Grafana fills them in.
func dashboardQueries(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../deploy/grafana/waybill.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	filled := strings.NewReplacer("$job", "waybill", "$__rate_interval", "15s")
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			all = append(all, filled.Replace(target.Expr))
		}
	}
	if len(all) < 20 {
		t.Fatalf("%d queries", len(all))
	}
	return all
}

// metricNames are those that an expression names.
var metricName = regexp.MustCompile(`\b(?:waybill_herald|temporal|process|go)_[a-z_]+\b`)

// Every query of the dashboard has an answer from a serve that works, every rule
// can be evaluated on it, and names only what is there.
func TestDashboardAndAlertsFitWhatIsExposed(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	p := startPrometheus(t, strings.TrimPrefix(l.serve.URL(t), "http://"))
	good, bad := l.hook(t, "status200", "seen"), l.hook(t, "status500", "seen-failing")
	queue(t, l.Site, bad, l.object, forever)
	waiting := dashboardQueries(t)
	var said string
	scenario.Until(t, patience, func() string { return fmt.Sprintf("each query is answered; %q is not: %s", waiting, said) }, func() bool {
		queue(t, l.Site, good, l.object, never) // rates want something to grow
		waiting = slices.DeleteFunc(waiting, func(expr string) bool {
			answer, ok := p.query(t, expr)
			said = answer
			return ok && answer != ""
		})
		return len(waiting) == 0
	})
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Query, Health, LastError string }
			}
		}
	}
	scenario.Until(t, patience, "every rule was evaluated", func() bool {
		rules.Data.Groups = nil
		if err := json.Unmarshal([]byte(scenario.Ask(t, http.MethodGet, p.url+"/api/v1/rules", "").Body), &rules); err != nil {
			t.Fatal(err)
		}
		for _, g := range rules.Data.Groups {
			for _, r := range g.Rules {
				if r.Health == "unknown" {
					return false
				}
			}
		}
		return len(rules.Data.Groups) > 0
	})
	for _, g := range rules.Data.Groups {
		for _, r := range g.Rules {
			if r.Health != "ok" {
				t.Errorf("%s: %s", r.Name, r.LastError)
			}
			for _, name := range metricName.FindAllString(r.Query, -1) {
				if answer, ok := p.query(t, name); !ok || answer == "" {
					t.Errorf("%s asks for %s, which is not exposed: %s", r.Name, name, answer)
				}
			}
		}
	}
	if out, ok := p.query(t, `ALERTS{alertstate="firing"}`); !ok || out != "" {
		t.Errorf("alerts of a serve that works: %s", out)
	}
}

// Each rule fires for its trouble, none on a day like any other, and the docs say
// of each what it means.
func TestEachAlertFiresForItsTrouble(t *testing.T) {
	t.Parallel()
	needsPromtool(t)
	if out, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", "../deploy/prometheus/alerts.test.yml").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	rules, err := os.ReadFile("../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("../deploy/prometheus/alerts.test.yml")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^      - alert: (\w+)$`).FindAllStringSubmatch(string(rules), -1)
	if len(names) == 0 {
		t.Fatal("no rules")
	}
	for _, name := range names {
		if n := strings.Count(string(tests), "alertname: "+name[1]+"\n") + strings.Count(string(tests), "alertname: "+name[1]+"}"); n < 2 {
			t.Errorf("%s is not tested both ways", name[1])
		}
		if !strings.Contains(string(docs), "| `"+name[1]+"` |") {
			t.Errorf("docs/operations.md does not say what %s means", name[1])
		}
	}
}
