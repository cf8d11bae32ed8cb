package config

import (
	"crypto/tls"
	"errors"
	"strings"
)

// Errors of the files that were fine at Load and are not any more.
var (
	errPair   = errors.New("the client certificate and its key cannot be loaded as a pair")
	errBundle = errors.New("a CA file cannot be read or holds no certificate")
)

// Where a value came from, as `waybill config` prints it.
const (
	sourceEnvironment = "environment"
	sourceDefault     = "default"
	sourceDerived     = "derived"
)

// Load reads every variable through getenv. An unset variable and an empty
// one are the same: the default. The error, if any, is a Faults with every
// fault of the configuration; the Config is then not to be used.
func Load(getenv func(string) string) (Config, error) {
	c := Config{sources: make(map[string]string, len(variables))}
	var faults Faults
	for _, v := range variables {
		faults = append(faults, v.load(&c, getenv(v.name))...)
	}
	for _, check := range checks {
		faults = append(faults, check(&c, getenv)...)
	}
	if faults != nil {
		return c, faults
	}
	return c, nil
}

// load reads one variable. White space around a value is a shell's accident
// and is dropped, except in credentials, whose reader complains about it: a
// token of nothing but a line break must not leave the interface open.
func (v variable) load(c *Config, value string) Faults {
	if !v.verbatim {
		value = strings.TrimSpace(value)
	}
	c.sources[v.name] = sourceEnvironment
	if value == "" {
		c.sources[v.name] = sourceDefault
		value = v.fallback
	}
	if value == "" {
		return nil
	}
	var faults Faults
	for _, complaint := range v.read(c, value) {
		right := complaint.right
		if right == "" {
			right = v.right
		}
		faults = append(faults, Fault{Name: v.name, Wrong: complaint.wrong, Right: right})
	}
	return faults
}

// checks look at several variables together. They stay quiet about values
// that have a fault of their own already.
var checks = []func(*Config, func(string) string) Faults{checkNamespace, checkLedger, checkPair}

// checkNamespace derives the storage namespace from the name of the Herald
// database, unless it was given.
func checkNamespace(c *Config, getenv func(string) string) Faults {
	if !c.Herald.DSN.Set() {
		return nil
	}
	database := c.Herald.DSN.Database()
	if database == "" {
		return Faults{heraldFault("the data source names no database")}
	}
	if strings.TrimSpace(getenv("WAYBILL_HERALD_NAMESPACE")) != "" {
		return nil
	}
	namespace, ok := strings.CutSuffix(database, heraldSuffix)
	if !ok {
		return Faults{heraldFault("the database's name does not end in _herald, so the storage namespace is unknown")}
	}
	if !namespacePattern.MatchString(namespace) {
		return Faults{heraldFault("what stands before _herald in the database's name is not a storage namespace")}
	}
	c.Herald.Namespace = namespace
	c.sources["WAYBILL_HERALD_NAMESPACE"] = sourceDerived
	return nil
}

func heraldFault(wrong string) Fault {
	return Fault{
		Name: "WAYBILL_HERALD_DSN", Wrong: wrong,
		Right: "for example waybill:PASSWORD@tcp(127.0.0.1:3306)/phabricator_herald, or set WAYBILL_HERALD_NAMESPACE as well",
	}
}

// checkLedger wants a database name: the migrations create tables in it.
func checkLedger(c *Config, _ func(string) string) Faults {
	const example = "for example waybill:PASSWORD@tcp(127.0.0.1:3306)/waybill"
	switch {
	case !c.Ledger.Set():
		return nil
	case c.Herald.Enabled() && c.Ledger.Address() == c.Herald.DSN.Address() && c.Ledger.Database() == c.Herald.DSN.Database():
		// Migrations would make tables among Phorge's.
		return Faults{{"WAYBILL_DSN", "names Phorge's own database", "a database of Waybill's own, " + example}}
	case c.Ledger.Database() != "":
		return nil
	}
	return Faults{{
		Name: "WAYBILL_DSN", Wrong: "the data source names no database",
		Right: example,
	}}
}

// checkPair wants the client certificate and its key both or not at all, and
// belonging together.
func checkPair(c *Config, getenv func(string) string) Faults {
	const cert, key = "WAYBILL_TEMPORAL_TLS_CERT_FILE", "WAYBILL_TEMPORAL_TLS_KEY_FILE"
	hasCert, hasKey := strings.TrimSpace(getenv(cert)) != "", strings.TrimSpace(getenv(key)) != ""
	switch {
	case hasCert && !hasKey:
		return Faults{{key, "is not set, but " + cert + " is", "set both or neither"}}
	case hasKey && !hasCert:
		return Faults{{cert, "is not set, but " + key + " is", "set both or neither"}}
	case c.Temporal.CertFile == "" || c.Temporal.KeyFile == "":
		return nil
	}
	if _, err := tls.LoadX509KeyPair(c.Temporal.CertFile, c.Temporal.KeyFile); err != nil {
		return Faults{{key, "the file is not the private key of the certificate in " + cert, "name the PEM key that belongs to it"}}
	}
	return nil
}
