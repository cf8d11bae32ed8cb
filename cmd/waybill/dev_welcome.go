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

// welcome prints what runs, what to open and what to try: within 80 columns,
// and short enough that the whole start fits a screen of 24 lines.
func (s *demoStack) welcome() {
	s.line(`
  Web UI      %s
  API         http://%s/api/webhook/stats  (and /metrics)
  log         %s

Four hooks: healthy answers at once, slow takes two seconds, failing says 503,
hanging never answers. Try, in another terminal in this folder:
  bin/waybill dev demo break             healthy says 503; heal mends it
  bin/waybill dev demo enqueue 500       a flood for healthy
  bin/waybill dev demo pause             healthy waits; resume goes on
  . %s && bin/waybill hooks list
Requests of the failing hook, each with the timer that it waits for:
  %s
Ctrl-C ends it and keeps the data.
`,
		s.temporal.UI(), s.options.addr(apiPort), serveLog(), environmentFile(), s.requests("failing"))
	if !s.options.quiet {
		s.line("%s", devstack.ScreenHead())
	}
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
