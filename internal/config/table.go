package config

import (
	"net/netip"
	"regexp"
	"time"
)

// variable is one line of the table in the documentation: the whole truth
// about one environment variable.
type variable struct {
	name     string
	fallback string // used when the variable is unset or empty; empty: no value
	shown    string // what the documentation calls the default, when not fallback
	help     string
	right    string // what would be right, for a fault without a better hint
	kind
}

// variables is the table, in the order of the documentation. Ranges state
// their reason, because "out of range" alone teaches nobody.
var variables = append(append([]variable{}, heraldVariables...), sharedVariables...)

var heraldVariables = []variable{
	{name: "WAYBILL_HERALD_DSN", shown: "unset: lane off",
		help:  "data source of Phorge's {namespace}_herald database",
		right: "for example waybill:PASSWORD@tcp(127.0.0.1:3306)/phabricator_herald",
		kind:  dsn(func(c *Config) *DSN { return &c.Herald.DSN })},
	{name: "WAYBILL_HERALD_NAMESPACE", shown: "from the DSN",
		help:  "Phorge's storage namespace, for lock names and tables",
		right: "letters, digits, _ and -, for example phabricator",
		kind:  text(func(c *Config) *string { return &c.Herald.Namespace }, namespacePattern, "is not a storage namespace")},
	{name: "WAYBILL_HERALD_LOCK_DSN", shown: "the herald server",
		help:  "server that holds Phorge's user locks: the master of its repository database",
		right: "for example waybill:PASSWORD@tcp(10.0.0.5:3306)/",
		kind:  dsn(func(c *Config) *DSN { return &c.Herald.lockDSN })},
	{name: "WAYBILL_HERALD_TAKEOVER", fallback: "lock",
		help:  "how Phorge is kept from sending: lock (its user locks) or external (switched off otherwise)",
		right: "write lock or external",
		kind:  word(func(c *Config) *Takeover { return &c.Herald.Takeover }, TakeoverLock, TakeoverExternal)},
	{name: "WAYBILL_HERALD_ALLOW", shown: "empty",
		help:  "networks opened for hooks, although the deny list covers them",
		right: networksRight,
		kind:  networks(func(c *Config) *[]netip.Prefix { return &c.Herald.Allow })},
	{name: "WAYBILL_HERALD_DENY", shown: "Phorge's blacklist",
		help:  "networks no hook may reach; replaces the default list",
		right: networksRight,
		kind:  networks(func(c *Config) *[]netip.Prefix { return &c.Herald.Deny })},
	{name: "WAYBILL_HERALD_CA_FILE", shown: "system",
		help:  "PEM bundle that vouches for hooks' servers; replaces the system's",
		right: bundleRight,
		kind:  certificates(func(c *Config) *string { return &c.Herald.CAFile })},
	{name: "WAYBILL_HERALD_POLL_INTERVAL", fallback: "100ms",
		help:  "pause between two looks at the queue",
		right: "for example 100ms",
		kind: duration(func(c *Config) *time.Duration { return &c.Herald.PollInterval },
			span{min: 10 * time.Millisecond, max: time.Minute, why: "each poll is a query on Phorge's database, and a row waits for the next one"})},
	{name: "WAYBILL_HERALD_DELIVERY_TIMEOUT", fallback: "15s",
		help:  "time for one whole exchange with a receiver",
		right: "for example 15s",
		kind: duration(func(c *Config) *time.Duration { return &c.Herald.DeliveryTimeout },
			span{min: time.Second, max: 5 * time.Minute, why: "a shorter one calls healthy receivers dead, a longer one holds a claim for minutes"})},
	{name: "WAYBILL_HERALD_WRITE_ALLOWANCE", fallback: "10s",
		help:  "part of the lease kept for writing the result",
		right: "for example 10s",
		kind: duration(func(c *Config) *time.Duration { return &c.Herald.WriteAllowance },
			span{min: 100 * time.Millisecond, max: 5 * time.Minute, why: "a commit takes its time, and a dead worker's rows wait for the lease"})},
	{name: "WAYBILL_HERALD_CLAIM_LEASE", fallback: "30s",
		help:  "how long a claim holds; raised when the timeout and the allowance need more",
		right: "for example 30s",
		kind: duration(func(c *Config) *time.Duration { return &c.Herald.ClaimLease },
			span{min: time.Second, max: time.Hour, why: "a row of a dead worker waits for one lease"})},
	{name: "WAYBILL_HERALD_RETRY_BACKOFF", fallback: "60s",
		help:  "earliest time between two attempts of one row",
		right: "for example 60s",
		kind: duration(func(c *Config) *time.Duration { return &c.Herald.RetryBackoff },
			span{min: 3 * time.Second, max: 7 * 24 * time.Hour, whole: true, why: "a row that fails in the second of its claim ends two seconds above its own epoch, and Phorge collects rows after seven days"})},
	{name: "WAYBILL_HERALD_BREAKER_THRESHOLD", fallback: "10",
		help:  "failing rows of one hook within the window that stop it",
		right: "for example 10",
		kind: count(func(c *Config) *int { return &c.Herald.BreakerThreshold }, 1, 1_000_000,
			"with zero no hook would ever be called")},
	{name: "WAYBILL_HERALD_BREAKER_WINDOW", fallback: "300s",
		help:  "how far back the breaker counts failing rows",
		right: "for example 300s",
		kind: duration(func(c *Config) *time.Duration { return &c.Herald.BreakerWindow },
			span{min: time.Second, max: 24 * time.Hour, whole: true, why: "a stopped hook stays stopped until the window slides"})},
	{name: "WAYBILL_HERALD_MAX_IN_FLIGHT", fallback: "16",
		help:  "POSTs at once in this process, receivers that answer fast",
		right: "for example 16",
		kind: count(func(c *Config) *int { return &c.Herald.MaxInFlight }, 1, 1024,
			"beyond that a process spends its time on switching, not on sending")},
	{name: "WAYBILL_HERALD_MAX_SLOW", fallback: "64",
		help:  "POSTs at once in this process, slow and unknown receivers",
		right: "for example 64",
		kind: count(func(c *Config) *int { return &c.Herald.MaxSlow }, 1, 1024,
			"each holds a connection and memory for as long as its receiver takes")},
}

const (
	networksRight = "a list of networks, for example 10.0.0.0/8, fd00::/8"
	bundleRight   = "the path of a readable PEM file, for example /etc/waybill/ca.pem"
)

// temporalNamespace is what Temporal accepts as the name of a namespace.
var temporalNamespace = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$`)

// serverName is a name in a certificate, never an address with a port.
var serverName = regexp.MustCompile(`^[A-Za-z0-9*]([A-Za-z0-9.:-]*[A-Za-z0-9])?$`)
