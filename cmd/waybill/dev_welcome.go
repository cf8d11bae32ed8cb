package main

import (
	"database/sql"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"waybill/internal/devstack"
)

// welcome prints what runs, what to open and what to try, within 80 columns.
func (s *demoStack) welcome() {
	healthy := s.demo.Hooks()[0]
	s.line(`
  Web UI      %s
  API         http://%s/api/webhook/stats
  metrics     http://%s/metrics
  log         %s

Try, in another terminal in this folder:
  1. Open a request of the failing hook: its attempts, and the timer that says
     what it waits for.
       %s
  2. Pause the healthy hook, watch it fall silent, and resume it:
       %s workflow signal --name pause \
         --workflow-id hook/%s --input '"lunch"'
       (the same with --name resume)
  3. See all hooks, who owns them and what waits:
       . %s && bin/waybill hooks list

Four hooks: healthy answers at once, slow takes two seconds, failing says 503,
hanging never answers. Deliveries, as the receiver sees them (Ctrl-C ends it):
`,
		s.temporal.UI(), devAPI, devAPI, filepath.Join(devDir, "serve.log"), s.requests("failing"), s.bin, healthy.PHID, environmentFile())
}

// requests is the Web UI's list of one hook's requests.
func (s *demoStack) requests(name string) string {
	for _, h := range s.demo.Hooks() {
		if h.Name == name {
			return s.temporal.UI() + "?query=" + url.QueryEscape("WaybillHook='"+h.PHID+"'")
		}
	}
	return s.temporal.UI()
}

func environmentFile() string { return filepath.Join(devDir, "env") }

// writeEnvironment lets other commands find the demo.
func (s *demoStack) writeEnvironment() error {
	var b strings.Builder
	settings := s.settings()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		_, _ = fmt.Fprintf(&b, "export %s='%s'\n", name, settings[name])
	}
	return os.WriteFile(environmentFile(), []byte(b.String()), 0o600)
}

// openDemo opens the private server.
func openDemo(m *devstack.MariaDB) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(m.Root())
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
