package config

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// env is an environment for tests.
type env map[string]string

func (e env) get(name string) string { return e[name] }

// mustLoad loads an environment that has no faults.
func mustLoad(t *testing.T, e env) Config {
	t.Helper()
	c, err := Load(e.get)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

// faultsOf loads an environment that must have faults.
func faultsOf(t *testing.T, e env) Faults {
	t.Helper()
	_, err := Load(e.get)
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("Load(%v) returned %v, not Faults", e, err)
	}
	return faults
}

func TestDefaults(t *testing.T) {
	c := mustLoad(t, nil)
	want := Herald{
		PollInterval: 100 * time.Millisecond, DeliveryTimeout: 15 * time.Second, RetryBackoff: time.Minute,
		ClaimLease: 30 * time.Second, WriteAllowance: 10 * time.Second, BreakerThreshold: 10,
		BreakerWindow: 5 * time.Minute, MaxInFlight: 16, MaxSlow: 64, Takeover: TakeoverLock,
	}
	if diff := cmp.Diff(want, c.Herald, cmp.AllowUnexported(Herald{}, DSN{})); diff != "" {
		t.Errorf("Herald (-want +got):\n%s", diff)
	}
	if c.Herald.Enabled() {
		t.Error("the Herald lane is on without a DSN")
	}
	if got := c.Ledger.String(); got != "root@tcp(127.0.0.1:3306)/waybill" {
		t.Errorf("Ledger = %s", got)
	}
	if c.Temporal.Address != "127.0.0.1:7233" || c.Temporal.Namespace != "default" || c.Temporal.TLSEnabled() {
		t.Errorf("Temporal = %+v", c.Temporal)
	}
	if c.API.Listen != "127.0.0.1:8160" || c.API.Token.Set() {
		t.Errorf("API = %+v", c.API)
	}
	if diff := cmp.Diff(Egress{Ports: []uint16{443}}, c.Egress); diff != "" {
		t.Errorf("Egress (-want +got):\n%s", diff)
	}
	if c.Log != (Log{Level: "info"}) || c.Keys.File != "" || c.Keys.List != nil {
		t.Errorf("Log = %+v, Keys = %+v", c.Log, c.Keys)
	}
	if warnings := c.Warnings(); warnings != nil {
		t.Errorf("the defaults warn: %q", warnings)
	}
}

// valid holds, for every variable, values that must be accepted and how
// Entries shows them; an empty shown means "as given". TestTablesAreTotal
// keeps it complete.
var valid = []struct{ name, value, shown string }{
	{"WAYBILL_HERALD_DSN", "u:p@tcp(db:3306)/phabricator_herald", "u:********@tcp(db:3306)/phabricator_herald"},
	{"WAYBILL_HERALD_DSN", "u@unix(/run/mysqld/mysqld.sock)/my-site_herald", ""},
	{"WAYBILL_HERALD_DSN", "u:p@tcp(db)/x_herald?tls=true&timeout=3s", "u:********@tcp(db:3306)/x_herald"},
	{"WAYBILL_HERALD_DSN", "u:p/a@s:s@tcp([::1]:3306)/x_herald", "u:********@tcp([::1]:3306)/x_herald"},
	{"WAYBILL_HERALD_NAMESPACE", "phabricator", ""},
	{"WAYBILL_HERALD_NAMESPACE", "my-site_2", ""},
	{"WAYBILL_HERALD_LOCK_DSN", "u:p@tcp(master:3306)/", "u:********@tcp(master:3306)/"},
	{"WAYBILL_HERALD_TAKEOVER", "lock", ""},
	{"WAYBILL_HERALD_TAKEOVER", "external", ""},
	{"WAYBILL_HERALD_ALLOW", "10.0.0.0/8, fd00::/8", "10.0.0.0/8,fd00::/8"},
	{"WAYBILL_HERALD_ALLOW", "127.0.0.1/32\t::1/128\n192.168.0.0/16", "127.0.0.1/32,::1/128,192.168.0.0/16"},
	{"WAYBILL_HERALD_DENY", "0.0.0.0/0 ::/0", "0.0.0.0/0,::/0"},
	{"WAYBILL_HERALD_CA_FILE", "testdata/ca.pem", ""},
	{"WAYBILL_HERALD_POLL_INTERVAL", "10ms", ""},
	{"WAYBILL_HERALD_POLL_INTERVAL", "1m", "60s"},
	{"WAYBILL_HERALD_POLL_INTERVAL", " 250ms\n", "250ms"},
	{"WAYBILL_HERALD_DELIVERY_TIMEOUT", "1s", ""},
	{"WAYBILL_HERALD_DELIVERY_TIMEOUT", "1500ms", "1.5s"},
	{"WAYBILL_HERALD_DELIVERY_TIMEOUT", "5m", "300s"},
	{"WAYBILL_HERALD_WRITE_ALLOWANCE", "100ms", ""},
	{"WAYBILL_HERALD_WRITE_ALLOWANCE", "5m", "300s"},
	{"WAYBILL_HERALD_CLAIM_LEASE", "45s", ""},
	{"WAYBILL_HERALD_CLAIM_LEASE", "1h", ""},
	{"WAYBILL_HERALD_RETRY_BACKOFF", "3s", ""},
	{"WAYBILL_HERALD_RETRY_BACKOFF", "168h", ""},
	{"WAYBILL_HERALD_BREAKER_THRESHOLD", "1", ""},
	{"WAYBILL_HERALD_BREAKER_THRESHOLD", "1000000", ""},
	{"WAYBILL_HERALD_BREAKER_WINDOW", "1s", ""},
	{"WAYBILL_HERALD_BREAKER_WINDOW", "10m", ""},
	{"WAYBILL_HERALD_BREAKER_WINDOW", "24h", ""},
	{"WAYBILL_HERALD_MAX_IN_FLIGHT", "1", ""},
	{"WAYBILL_HERALD_MAX_IN_FLIGHT", "1024", ""},
	{"WAYBILL_HERALD_MAX_SLOW", "1", ""},
	{"WAYBILL_HERALD_MAX_SLOW", "1024", ""},
	{"WAYBILL_DSN", "w:s@tcp(10.0.0.9:3307)/waybill", "w:********@tcp(10.0.0.9:3307)/waybill"},
	{"WAYBILL_TEMPORAL_ADDRESS", "temporal:7233", ""},
	{"WAYBILL_TEMPORAL_ADDRESS", "[::1]:7233", ""},
	{"WAYBILL_TEMPORAL_ADDRESS", "dns:///frontend.example.org:7233", ""},
	{"WAYBILL_TEMPORAL_NAMESPACE", "team.webhooks-1", ""},
	{"WAYBILL_TEMPORAL_TLS_CA_FILE", "testdata/ca.pem", ""},
	{"WAYBILL_TEMPORAL_TLS_CERT_FILE", "testdata/client.pem", ""},
	{"WAYBILL_TEMPORAL_TLS_KEY_FILE", "testdata/client.key", ""},
	{"WAYBILL_TEMPORAL_TLS_SERVER_NAME", "temporal.example.org", ""},
	{"WAYBILL_TEMPORAL_API_KEY", "eyJhbGciOi.J9.x_-", "********"},
	{"WAYBILL_LISTEN", ":8160", ""},
	{"WAYBILL_LISTEN", "0.0.0.0:0", ""},
	{"WAYBILL_LISTEN", "localhost:65535", ""},
	{"WAYBILL_TOKEN", "s3cret", "********"},
	{"WAYBILL_KEK_FILE", "testdata/kek", ""},
	{"WAYBILL_EGRESS_ALLOW", "10.0.0.0/8", ""},
	{"WAYBILL_EGRESS_DENY", "203.0.113.0/24", ""},
	{"WAYBILL_EGRESS_PORTS", "443 8443,1,65535", "443,8443,1,65535"},
	{"WAYBILL_LOG_LEVEL", "debug", ""},
	{"WAYBILL_LOG_LEVEL", "info", ""},
	{"WAYBILL_LOG_LEVEL", "warn", ""},
	{"WAYBILL_LOG_LEVEL", "error", ""},
	{"WAYBILL_LOG_FORMAT", "json", ""},
	{"WAYBILL_LOG_FORMAT", "console", ""},
}

// companions are the variables that another one needs beside it.
var companions = map[string]env{
	"WAYBILL_TEMPORAL_TLS_CERT_FILE": {"WAYBILL_TEMPORAL_TLS_KEY_FILE": "testdata/client.key"},
	"WAYBILL_TEMPORAL_TLS_KEY_FILE":  {"WAYBILL_TEMPORAL_TLS_CERT_FILE": "testdata/client.pem"},
	// Shortens what the lease has to cover, so that short ones hold.
	"WAYBILL_HERALD_CLAIM_LEASE": {"WAYBILL_HERALD_DELIVERY_TIMEOUT": "1s", "WAYBILL_HERALD_WRITE_ALLOWANCE": "1s"},
}

func with(name, value string) env {
	e := env{name: value}
	for other, beside := range companions[name] {
		e[other] = beside
	}
	return e
}

func TestValidValues(t *testing.T) {
	writeKeyFiles(t)
	for _, test := range valid {
		t.Run(test.name+"="+test.value, func(t *testing.T) {
			want := test.shown
			if want == "" {
				want = test.value
			}
			got := entry(t, mustLoad(t, with(test.name, test.value)), test.name)
			if got.Value != want || got.Source != "environment" {
				t.Errorf("entry = %q from %q, want %q from environment", got.Value, got.Source, want)
			}
		})
	}
}

func TestTablesAreTotal(t *testing.T) {
	for _, v := range variables {
		var good, bad bool
		for _, test := range valid {
			good = good || test.name == v.name
		}
		for _, test := range invalid {
			bad = bad || test.name == v.name
		}
		if !good || !bad {
			t.Errorf("%s: valid cases %t, invalid cases %t", v.name, good, bad)
		}
		if v.right == "" || v.help == "" || (v.shown == "" && v.fallback == "") {
			t.Errorf("%s: the table lacks a help, a hint or a default", v.name)
		}
	}
}

// TestOverviewIsCovered holds the names, which are a contract with
// deployments: none may get lost or renamed.
func TestOverviewIsCovered(t *testing.T) {
	contract := strings.Fields(`
		WAYBILL_HERALD_DSN WAYBILL_DSN WAYBILL_TEMPORAL_ADDRESS WAYBILL_TEMPORAL_NAMESPACE
		WAYBILL_TEMPORAL_TLS_CA_FILE WAYBILL_TEMPORAL_TLS_CERT_FILE WAYBILL_TEMPORAL_TLS_KEY_FILE
		WAYBILL_TEMPORAL_TLS_SERVER_NAME WAYBILL_TEMPORAL_API_KEY WAYBILL_LISTEN WAYBILL_TOKEN
		WAYBILL_HERALD_ALLOW WAYBILL_HERALD_POLL_INTERVAL WAYBILL_HERALD_DELIVERY_TIMEOUT
		WAYBILL_HERALD_RETRY_BACKOFF WAYBILL_HERALD_CLAIM_LEASE WAYBILL_HERALD_BREAKER_THRESHOLD
		WAYBILL_HERALD_BREAKER_WINDOW WAYBILL_HERALD_MAX_IN_FLIGHT WAYBILL_HERALD_MAX_SLOW
		WAYBILL_HERALD_WRITE_ALLOWANCE WAYBILL_HERALD_TAKEOVER WAYBILL_HERALD_LOCK_DSN
		WAYBILL_HERALD_DENY WAYBILL_HERALD_NAMESPACE WAYBILL_HERALD_CA_FILE WAYBILL_KEK_FILE
		WAYBILL_EGRESS_ALLOW WAYBILL_EGRESS_DENY WAYBILL_EGRESS_PORTS WAYBILL_LOG_LEVEL WAYBILL_LOG_FORMAT`)
	for _, name := range contract {
		if !known(name) {
			t.Errorf("%s is missing", name)
		}
	}
	if len(variables) != len(contract) {
		t.Errorf("%d variables, the contract names %d", len(variables), len(contract))
	}
}

func TestNamespace(t *testing.T) {
	derived := mustLoad(t, env{"WAYBILL_HERALD_DSN": "u@tcp(db)/my-site_herald"})
	if got := derived.Herald.Namespace; got != "my-site" {
		t.Errorf("derived namespace = %q", got)
	}
	if got := entry(t, derived, "WAYBILL_HERALD_NAMESPACE"); got.Value != "my-site" || got.Source != "derived" {
		t.Errorf("entry = %+v", got)
	}
	given := mustLoad(t, env{"WAYBILL_HERALD_DSN": "u@tcp(db)/queue", "WAYBILL_HERALD_NAMESPACE": "phabricator"})
	if got := given.Herald.Namespace; got != "phabricator" {
		t.Errorf("given namespace = %q", got)
	}
	wins := mustLoad(t, env{"WAYBILL_HERALD_DSN": "u@tcp(db)/a_herald", "WAYBILL_HERALD_NAMESPACE": "b"})
	if got := wins.Herald.Namespace; got != "b" {
		t.Errorf("given beside derived = %q", got)
	}
}

func TestLockServer(t *testing.T) {
	const here, there = "u:p@tcp(db:3306)/x_herald", "u:p@tcp(master:3306)/"
	for _, test := range []struct {
		name, lock, address string
		beside              bool
	}{
		{"not given", "", "tcp(db:3306)", true},
		{"the same", "v:q@tcp(db:3306)/", "tcp(db:3306)", true},
		{"another", there, "tcp(master:3306)", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := mustLoad(t, env{"WAYBILL_HERALD_DSN": here, "WAYBILL_HERALD_LOCK_DSN": test.lock}).Herald
			if h.LockDSN().Address() != test.address || h.LocksBesideRows() != test.beside {
				t.Errorf("locks at %s, beside rows: %t", h.LockDSN().Address(), h.LocksBesideRows())
			}
		})
	}
	// Without a Herald DSN there is nothing to derive from.
	if h := mustLoad(t, nil).Herald; h.LockDSN().Set() {
		t.Errorf("locks at %s without a lane", h.LockDSN())
	}
}

func TestDriverConfigurationIsACopy(t *testing.T) {
	d := mustLoad(t, env{"WAYBILL_DSN": "w:s@tcp(db)/waybill"}).Ledger
	first := d.Driver()
	first.Passwd, first.DBName = "changed", "changed"
	if second := d.Driver(); second.Passwd != "s" || second.DBName != "waybill" {
		t.Errorf("a caller changed the configuration: %q %q", second.Passwd, second.DBName)
	}
	if (DSN{}).Driver() != nil || (DSN{}).String() != "" || (DSN{}).Address() != "" || (DSN{}).Database() != "" {
		t.Error("an unset DSN pretends to be something")
	}
}

func TestTypedLists(t *testing.T) {
	c := mustLoad(t, env{"WAYBILL_HERALD_DENY": "10.0.0.0/8", "WAYBILL_EGRESS_PORTS": "443,8443"})
	if diff := cmp.Diff([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, c.Herald.Deny,
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint16{443, 8443}, c.Egress.Ports); diff != "" {
		t.Error(diff)
	}
}

func TestKeys(t *testing.T) {
	writeKeyFiles(t)
	keys := mustLoad(t, env{"WAYBILL_KEK_FILE": "testdata/kek"}).Keys
	if len(keys.List) != 2 || keys.List[0].ID != "kek-2026" || keys.List[1].ID != "kek-2025" {
		t.Fatalf("keys = %v", keys.List)
	}
	if got := keys.List[0].Key.Reveal(); got != strings.Repeat("k", 32) {
		t.Errorf("the first key has %d bytes", len(got))
	}
}

// entry finds one variable among the entries.
func entry(t *testing.T, c Config, name string) Entry {
	t.Helper()
	for _, e := range c.Entries() {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("no entry for %s", name)
	return Entry{}
}

// inDirectory runs the test in a directory of its own, so that the tables can
// name files by fixed relative paths.
func inDirectory(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.Mkdir("testdata", 0o700); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("testdata", name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
