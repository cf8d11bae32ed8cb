package config

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// DSN is a parsed MySQL data source name that never shows its password.
type DSN struct{ parsed *mysql.Config }

// Set says whether a data source was given.
func (d DSN) Set() bool { return d.parsed != nil }

// Driver returns a copy of the driver's own configuration, password included,
// for mysql.NewConnector. It returns nil when the DSN is not set.
func (d DSN) Driver() *mysql.Config {
	if d.parsed == nil {
		return nil
	}
	return d.parsed.Clone()
}

// Database is the name of the database, empty when none is named.
func (d DSN) Database() string {
	if d.parsed == nil {
		return ""
	}
	return d.parsed.DBName
}

// Address is network and address of the server, such as
// "tcp(127.0.0.1:3306)"; empty when the DSN is not set.
func (d DSN) Address() string {
	if d.parsed == nil {
		return ""
	}
	return d.parsed.Net + "(" + d.parsed.Addr + ")"
}

// String shows user, address and database. Of the password it shows only that
// there is one; parameters are left out, because connection attributes may
// hold anything.
func (d DSN) String() string {
	if d.parsed == nil {
		return ""
	}
	var b strings.Builder
	if d.parsed.User != "" {
		b.WriteString(d.parsed.User)
	}
	if d.parsed.Passwd != "" {
		b.WriteString(":" + mask)
	}
	if b.Len() > 0 {
		b.WriteByte('@')
	}
	b.WriteString(d.Address() + "/" + d.parsed.DBName)
	return b.String()
}

// GoString keeps %#v from looking inside.
func (d DSN) GoString() string { return "config.DSN(" + d.String() + ")" }

// MarshalJSON writes what String shows.
func (d DSN) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// parseDSN reads a data source name. The driver's errors quote parts of the
// input, and a stray @ or / makes any part of it a piece of the password;
// so only sentences of our own leave here.
func parseDSN(value string) (DSN, string) {
	parsed, err := mysql.ParseDSN(value)
	if err != nil {
		return DSN{}, dsnFault(err.Error())
	}
	if parsed.User == "" {
		return DSN{}, "names no user"
	}
	// Without an @ the driver takes "user:password/db" for a network called
	// "user:password" on some paths and for a file on others. Only the two
	// networks that it dials itself are meant here.
	if parsed.Net != "tcp" && parsed.Net != "unix" {
		return DSN{}, "names a network other than tcp and unix"
	}
	return DSN{parsed: parsed}, ""
}

// dsnFault translates the driver's message by the words it is known to use.
func dsnFault(message string) string {
	for _, known := range dsnFaults {
		if strings.Contains(message, known.driver) {
			return known.ours
		}
	}
	return "is not a data source name that the MySQL driver can read"
}

// dsnFaults pairs words of go-sql-driver v1.10 (dsn.go) with our sentences.
// An unknown message falls through to a general one, so a new driver cannot
// make this leak.
var dsnFaults = []struct{ driver, ours string }{
	{"missing the slash", "has no slash before the database name"},
	{"escape a param", "has an address without parentheses, or an unescaped character after the slash"},
	{"missing closing brace", "has an address without its closing parenthesis"},
	{"default addr for network", "names a network other than tcp and unix"},
	{"bool value", "has a parameter that should be true or false"},
	{"invalid dbname", "has a database name with a broken %-escape"},
	{"unknown config name", "names a TLS configuration that does not exist; tls takes true, false, skip-verify or preferred"},
	{"unsafe collations", "combines interpolateParams with a collation that makes it unsafe"},
}

// heraldSuffix ends the name of the database that Phorge's Herald uses.
const heraldSuffix = "_herald"

// namespacePattern is deliberately narrow: the namespace becomes part of
// database names in SQL. 51 characters, because MySQL ends a name at 64 and
// Phorge's longest suffix, "_differential", takes 13.
var namespacePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,51}$`)
