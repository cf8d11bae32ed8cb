package config

import (
	"strings"
	"testing"
)

// invalid holds, for every variable, each kind of fault it can have: words of
// what must be said to be wrong, and of what would be right.
var invalid = []struct{ name, value, wrong, right string }{
	{"WAYBILL_HERALD_DSN", "u:hunter2@tcp(db:3306)", "no slash before the database name", "phabricator_herald"},
	{"WAYBILL_HERALD_DSN", "u:hunter2@tcp(db:3306/x_herald", "closing parenthesis", "PASSWORD"},
	{"WAYBILL_HERALD_DSN", "u:hunter2@db:3306/x_herald", "network other than tcp and unix", "tcp(127.0.0.1:3306)"},
	{"WAYBILL_HERALD_DSN", "u:hunter2/x_herald", "network other than tcp and unix", "tcp("},
	{"WAYBILL_HERALD_DSN", "hunter2/x_herald", "network other than tcp and unix", "tcp("},
	{"WAYBILL_HERALD_DSN", "u:hunter2@udp(db:3306)/x_herald", "network other than tcp and unix", "tcp("},
	{"WAYBILL_HERALD_DSN", "tcp(db:3306)/x_herald", "names no user", "waybill:PASSWORD"},
	{"WAYBILL_HERALD_DSN", "u:hunter2@tcp(db)/x_herald?x=/y", "unescaped", "tcp("},
	{"WAYBILL_HERALD_DSN", "u:hunter2@tcp(db)/x_herald?parseTime=hunter2", "true or false", "tcp("},
	{"WAYBILL_HERALD_DSN", "u:hunter2@tcp(db)/x_herald?tls=hunter2", "TLS configuration", "tcp("},
	{"WAYBILL_HERALD_DSN", "u:hunter2@tcp(db)/x_herald?timeout=hunter2", "not a data source name", "tcp("},
	{"WAYBILL_HERALD_DSN", "u:hunter2@tcp(db)/x%zz", "broken %-escape", "tcp("},
	{"WAYBILL_HERALD_DSN", "u:hunter2@tcp(db)/x_herald?interpolateParams=true&collation=big5_chinese_ci", "unsafe", "tcp("},
	{"WAYBILL_HERALD_DSN", "u:hunter2@tcp(db)/", "names no database", "_herald"},
	{"WAYBILL_HERALD_DSN", "u:hunter2@tcp(db)/phabricator", "does not end in _herald", "WAYBILL_HERALD_NAMESPACE"},
	{"WAYBILL_HERALD_DSN", "u:hunter2@tcp(db)/_herald", "not a storage namespace", "_herald"},
	{"WAYBILL_HERALD_DSN", "u:hunter2@tcp(db)/a`b_herald", "not a storage namespace", "_herald"},
	{"WAYBILL_HERALD_NAMESPACE", "a`; DROP", "not a storage namespace", "phabricator"},
	{"WAYBILL_HERALD_NAMESPACE", strings.Repeat("n", 52), "52 bytes, not repeated", "phabricator"},
	{"WAYBILL_HERALD_LOCK_DSN", "hunter2", "no slash", "10.0.0.5"},
	{"WAYBILL_HERALD_TAKEOVER", "Lock", `"Lock" is none of the words`, "lock or external"},
	{"WAYBILL_HERALD_TAKEOVER", "off", `"off" is none of the words`, "lock or external"},
	{"WAYBILL_HERALD_ALLOW", "10.0.0.1", "address without a prefix length", "10.0.0.1/32"},
	{"WAYBILL_HERALD_ALLOW", "fd00::1", "address without a prefix length", "fd00::1/128"},
	{"WAYBILL_HERALD_ALLOW", "10.1.2.3/8", "bits beyond its prefix length", "10.0.0.0/8"},
	{"WAYBILL_HERALD_ALLOW", "::ffff:10.0.0.0/104", "IPv4 network in IPv6 spelling", "write it as IPv4"},
	{"WAYBILL_HERALD_ALLOW", "10.0.0.0/33", "is not a network", "fd00::/8"},
	{"WAYBILL_HERALD_ALLOW", "fe80::1%eth0/64", "is not a network", "fd00::/8"},
	{"WAYBILL_HERALD_ALLOW", "intranet", "is not a network", "10.0.0.0/8"},
	{"WAYBILL_HERALD_ALLOW", "010.0.0.0/8", "is not a network", "10.0.0.0/8"},
	{"WAYBILL_HERALD_DENY", "10/8", "is not a network", "10.0.0.0/8"},
	{"WAYBILL_HERALD_CA_FILE", "testdata/none", "does not exist", "readable PEM"},
	{"WAYBILL_HERALD_CA_FILE", "testdata/text", "no PEM certificate", "readable PEM"},
	{"WAYBILL_HERALD_CA_FILE", "testdata/empty", "no PEM certificate", "readable PEM"},
	{"WAYBILL_HERALD_CA_FILE", "testdata/directory", "not a file", "readable PEM"},
	{"WAYBILL_HERALD_CA_FILE", "testdata/large", "larger than 4 MiB", "readable PEM"},
	{"WAYBILL_HERALD_POLL_INTERVAL", "15", `"15" has no unit`, `"15s"`},
	{"WAYBILL_HERALD_POLL_INTERVAL", "0.5", `"0.5" has no unit`, `"0.5s"`},
	{"WAYBILL_HERALD_POLL_INTERVAL", "soon", "not a duration", "100ms"},
	{"WAYBILL_HERALD_POLL_INTERVAL", "9ms", "outside 10ms to 60s: each poll is a query", "100ms"},
	{"WAYBILL_HERALD_POLL_INTERVAL", "-1s", "outside 10ms to 60s", "100ms"},
	{"WAYBILL_HERALD_POLL_INTERVAL", "0", "outside 10ms to 60s", "100ms"},
	{"WAYBILL_HERALD_POLL_INTERVAL", "61s", "outside 10ms to 60s", "100ms"},
	{"WAYBILL_HERALD_DELIVERY_TIMEOUT", "999ms", "outside 1s to 300s", "15s"},
	{"WAYBILL_HERALD_DELIVERY_TIMEOUT", "5m1s", "outside 1s to 300s", "15s"},
	{"WAYBILL_HERALD_WRITE_ALLOWANCE", "99ms", "outside 100ms to 300s", "10s"},
	{"WAYBILL_HERALD_CLAIM_LEASE", "2h", "outside 1s to 1h", "30s"},
	{"WAYBILL_HERALD_CLAIM_LEASE", "1000000h9999999h", "", "30s"},
	{"WAYBILL_HERALD_RETRY_BACKOFF", "2s", "two seconds above its own epoch", "60s"},
	{"WAYBILL_HERALD_RETRY_BACKOFF", "3500ms", "whole number of seconds", "60s"},
	{"WAYBILL_HERALD_RETRY_BACKOFF", "169h", "seven days", "60s"},
	{"WAYBILL_HERALD_BREAKER_THRESHOLD", "0", "no hook would ever be called", "10"},
	{"WAYBILL_HERALD_BREAKER_THRESHOLD", "ten", "not a whole number", "10"},
	{"WAYBILL_HERALD_BREAKER_THRESHOLD", "99999999999999999999", "from 1 to 1000000", "10"},
	{"WAYBILL_HERALD_BREAKER_WINDOW", "500ms", "outside 1s to 24h", "300s"},
	{"WAYBILL_HERALD_BREAKER_WINDOW", "1500ms", "whole number of seconds", "300s"},
	{"WAYBILL_HERALD_MAX_IN_FLIGHT", "0", "from 1 to 1024", "16"},
	{"WAYBILL_HERALD_MAX_IN_FLIGHT", "1025", "from 1 to 1024", "16"},
	{"WAYBILL_HERALD_MAX_IN_FLIGHT", "-4", "from 1 to 1024", "16"},
	{"WAYBILL_HERALD_MAX_IN_FLIGHT", "1.5", "not a whole number", "16"},
	{"WAYBILL_HERALD_MAX_SLOW", "many", "not a whole number", "64"},
	{"WAYBILL_DSN", "root:hunter2@tcp(127.0.0.1:3306)/", "names no database", "/waybill"},
	{"WAYBILL_DSN", "mysql://root:hunter2@db/waybill", "network other than tcp", "/waybill"},
	{"WAYBILL_TEMPORAL_ADDRESS", "temporal", "not host and port", "127.0.0.1:7233"},
	{"WAYBILL_TEMPORAL_ADDRESS", "https://temporal:7233", "is a URL", "127.0.0.1:7233"},
	{"WAYBILL_TEMPORAL_ADDRESS", ":7233", "no host", "127.0.0.1:7233"},
	{"WAYBILL_TEMPORAL_ADDRESS", "temporal:0", "no usable port", "127.0.0.1:7233"},
	{"WAYBILL_TEMPORAL_ADDRESS", "temporal:grpc", "no usable port", "127.0.0.1:7233"},
	{"WAYBILL_TEMPORAL_ADDRESS", "temp oral:7233", "neither an address nor a name", "127.0.0.1:7233"},
	{"WAYBILL_TEMPORAL_NAMESPACE", "two words", "not the name of a Temporal namespace", "default"},
	{"WAYBILL_TEMPORAL_TLS_CA_FILE", "testdata/none", "does not exist", "readable PEM"},
	{"WAYBILL_TEMPORAL_TLS_CERT_FILE", "testdata/client.key", "no PEM certificate", "readable PEM"},
	{"WAYBILL_TEMPORAL_TLS_KEY_FILE", "testdata/foreign.key", "not the private key of the certificate", "belongs to it"},
	{"WAYBILL_TEMPORAL_TLS_KEY_FILE", "testdata/text", "not the private key of the certificate", "belongs to it"},
	{"WAYBILL_TEMPORAL_TLS_KEY_FILE", "-----BEGIN PRIVATE KEY-----\nhunter2", "content of a file", "the path of"},
	{"WAYBILL_TEMPORAL_TLS_SERVER_NAME", "a name", "not a host name", "temporal.example.org"},
	{"WAYBILL_TEMPORAL_API_KEY", "hunter2\n", "a header cannot carry", "as Temporal issued it"},
	{"WAYBILL_LISTEN", "8160", "not host and port", ":8160"},
	{"WAYBILL_LISTEN", "127.0.0.1:65536", "no usable port", ":8160"},
	{"WAYBILL_LISTEN", "127.0.0.1:", "no usable port", ":8160"},
	{"WAYBILL_LISTEN", "http://127.0.0.1:8160", "is a URL", ":8160"},
	{"WAYBILL_LISTEN", "u:hunter2@tcp(db)/x", "not repeated here", ":8160"},
	{"WAYBILL_TOKEN", "hunter2 hunter2", "a header cannot carry", "openssl rand"},
	{"WAYBILL_TOKEN", "hunter2\n", "a header cannot carry", "openssl rand"},
	{"WAYBILL_TOKEN", "\n", "a header cannot carry", "openssl rand"},
	{"WAYBILL_TOKEN", "hünter2", "a header cannot carry", "openssl rand"},
	{"WAYBILL_KEK_FILE", "testdata/none", "does not exist", "openssl rand"},
	{"WAYBILL_KEK_FILE", "testdata/kek-short", "line 1 of the file has a key that is not 32 bytes", "openssl rand"},
	{"WAYBILL_KEK_FILE", "testdata/kek-alone", "line 1 of the file is not a key id and a key", "openssl rand"},
	{"WAYBILL_KEK_FILE", "testdata/kek-id", "key id with characters", "openssl rand"},
	{"WAYBILL_KEK_FILE", "testdata/kek-twice", "line 2 of the file repeats a key id", "openssl rand"},
	{"WAYBILL_KEK_FILE", "testdata/kek-comments", "holds no key", "openssl rand"},
	{"WAYBILL_KEK_FILE", "testdata/kek-long-line", "too long", "openssl rand"},
	{"WAYBILL_KEK_FILE", "hunter2hunter2", "does not exist", "openssl rand"},
	{"WAYBILL_EGRESS_ALLOW", "10.0.0.0", "address without a prefix length", "10.0.0.0/32"},
	{"WAYBILL_EGRESS_DENY", "everything", "is not a network", "10.0.0.0/8"},
	{"WAYBILL_EGRESS_PORTS", "https", "not a port", "443, 8443"},
	{"WAYBILL_EGRESS_PORTS", "0", "not a port", "443, 8443"},
	{"WAYBILL_EGRESS_PORTS", "65536", "not a port", "443, 8443"},
	{"WAYBILL_EGRESS_PORTS", ",", "no item", "443, 8443"},
	{"WAYBILL_LOG_LEVEL", "verbose", `"verbose" is none of the words`, "debug, info, warn or error"},
	{"WAYBILL_LOG_LEVEL", "INFO", `"INFO" is none of the words`, "debug, info, warn or error"},
	{"WAYBILL_LOG_FORMAT", "xml", `"xml" is none of the words`, "json or console"},
}

func TestInvalidValues(t *testing.T) {
	writeKeyFiles(t)
	for _, test := range invalid {
		t.Run(test.name+"="+test.value[:min(len(test.value), 40)], func(t *testing.T) {
			faults := faultsOf(t, with(test.name, test.value))
			if len(faults) != 1 {
				t.Fatalf("%d faults instead of one:\n%v", len(faults), faults)
			}
			got := faults[0]
			if got.Name != test.name || !strings.Contains(got.Wrong, test.wrong) || !strings.Contains(got.Right, test.right) {
				t.Errorf("got %q\nwant wrong %q, right %q", got, test.wrong, test.right)
			}
			if strings.Contains(faults.Error(), "hunter2") {
				t.Errorf("the secret leaks: %s", faults.Error())
			}
			if strings.Contains(faults.Error(), "\n") {
				t.Errorf("a fault with a line break: %q", faults.Error())
			}
		})
	}
}

func TestEveryItemOfAListIsReported(t *testing.T) {
	faults := faultsOf(t, env{"WAYBILL_HERALD_ALLOW": "10.0.0.1, 10.0.0.0/8, x", "WAYBILL_EGRESS_PORTS": "0 443 70000"})
	if len(faults) != 4 {
		t.Errorf("%d faults, want 4:\n%v", len(faults), faults)
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	writeKeyFiles(t)
	broken := env{}
	for _, test := range invalid {
		if test.name != "WAYBILL_TEMPORAL_TLS_KEY_FILE" || strings.HasPrefix(test.value, "-----") {
			broken[test.name] = test.value
		}
	}
	// The last one of the table is only wrong as long as no namespace is given.
	broken["WAYBILL_HERALD_DSN"] = "u:hunter2@tcp(db:3306)"
	faults := faultsOf(t, broken)
	reported := map[string]bool{}
	for _, fault := range faults {
		reported[fault.Name] = true
	}
	for _, v := range variables {
		if !reported[v.name] {
			t.Errorf("%s: no fault", v.name)
		}
	}
	lines := strings.Split(faults.Error(), "\n")
	if len(lines) != len(faults) {
		t.Errorf("%d lines for %d faults", len(lines), len(faults))
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, faults[i].Name+": ") || !strings.Contains(line, "; ") {
			t.Errorf("line %q", line)
		}
	}
}

func TestPairNeedsBoth(t *testing.T) {
	writeKeyFiles(t)
	const cert, key = "WAYBILL_TEMPORAL_TLS_CERT_FILE", "WAYBILL_TEMPORAL_TLS_KEY_FILE"
	for _, test := range []struct{ set, value, missing string }{
		{cert, "testdata/client.pem", key},
		{key, "testdata/client.key", cert},
	} {
		faults := faultsOf(t, env{test.set: test.value})
		if len(faults) != 1 || faults[0].Name != test.missing || faults[0].Right != "set both or neither" {
			t.Errorf("only %s: %v", test.set, faults)
		}
	}
	// A file with a fault of its own is not blamed for the pair, too.
	faults := faultsOf(t, env{cert: "testdata/text", key: "testdata/client.key"})
	if len(faults) != 1 || faults[0].Name != cert {
		t.Errorf("broken certificate: %v", faults)
	}
}

func TestEchoHidesWhatMightBeSecret(t *testing.T) {
	for _, value := range []string{"u:p@tcp(db)/x", strings.Repeat("k", 44), "a\nb", "-----BEGIN", "\x00"} {
		if got := echo(value); strings.Contains(got, value) || !strings.Contains(got, "not repeated") {
			t.Errorf("echo(%q) = %s", value, got)
		}
	}
	if got := echo("15"); got != `"15"` {
		t.Errorf("echo(15) = %s", got)
	}
}

// An unknown message of a later driver must not pass through.
func TestUnknownDriverMessage(t *testing.T) {
	if got := dsnFault("new in v2: hunter2"); strings.Contains(got, "hunter2") {
		t.Errorf("dsnFault = %q", got)
	}
}

// Waybill makes tables in its own database, and none in Phorge's.
func TestTheOwnDatabaseIsNotPhorges(t *testing.T) {
	for _, c := range []struct {
		ledger string
		fault  bool
	}{
		{"w:p@tcp(db:3306)/x_herald", true},
		{"other:p@tcp(db)/x_herald", true}, // the port's default is the same server
		{"w:p@tcp(db:3306)/waybill", false},
		{"w:p@tcp(db2:3306)/x_herald", false},
	} {
		_, err := Load(func(name string) string {
			return map[string]string{"WAYBILL_HERALD_DSN": "u:p@tcp(db:3306)/x_herald", "WAYBILL_DSN": c.ledger}[name]
		})
		if found := err != nil && strings.Contains(err.Error(), "names Phorge's own database"); found != c.fault {
			t.Errorf("%s: %v", c.ledger, err)
		}
	}
}
