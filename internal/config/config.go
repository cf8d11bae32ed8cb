// Package config turns the WAYBILL_* environment variables into typed values.
//
// It reports every fault of a configuration at once, each with the variable's
// name, what is wrong with its value and what would be right. It refuses to
// repeat a password, a token or a key anywhere: not in an error, not in a
// warning, not in the entries of `waybill config`, not through fmt or JSON.
//
// It reads the environment through a function it is given and the files the
// variables name; it opens no connection. cmd/waybill, worker, starter and api
// may import it; packages of its own floor and below take plain values instead.
package config

import (
	"net/netip"
	"time"
)

// Config holds every setting of Waybill. The zero value is not usable: Load
// fills in the defaults. Durations are time.Durations, counts are plain ints.
type Config struct {
	Herald   Herald
	Ledger   DSN // WAYBILL_DSN: Waybill's own database
	Temporal Temporal
	API      API
	Keys     Keys
	Egress   Egress
	Log      Log

	sources map[string]string // variable name -> where its value came from
}

// Herald holds the settings of the lane that drains Phorge's webhook queue.
type Herald struct {
	DSN              DSN // zero: the lane is off
	Namespace        string
	Allow            []netip.Prefix // networks opened for hooks
	Deny             []netip.Prefix // nil: the default deny list of package egress
	PollInterval     time.Duration
	DeliveryTimeout  time.Duration // the whole exchange, from dial to last byte
	RetryBackoff     time.Duration // whole seconds: Phorge's rows count in seconds
	ClaimLease       time.Duration // as configured; Config.Lease is what holds
	WriteAllowance   time.Duration // time for the result to reach the row
	BreakerThreshold int           // failing rows of one hook within the window
	BreakerWindow    time.Duration // whole seconds
	MaxInFlight      int           // concurrent POSTs of this process, fast receivers
	MaxSlow          int           // concurrent POSTs, slow and unknown receivers
	Takeover         Takeover
	CAFile           string // empty: the system's roots; otherwise replaces them

	lockDSN DSN // WAYBILL_HERALD_LOCK_DSN; see LockDSN
}

// Enabled says whether the Herald lane has a database to drain.
func (h Herald) Enabled() bool { return h.DSN.Set() }

// LockDSN is the server that holds Phorge's user locks: the one configured
// for it, otherwise the Herald server.
func (h Herald) LockDSN() DSN {
	if h.lockDSN.Set() {
		return h.lockDSN
	}
	return h.DSN
}

// LocksBesideRows says whether locks and rows live at the same address, so
// that a claim may test the lock in its own statement. Two names of one
// server count as two servers: that only loses the additional test.
func (h Herald) LocksBesideRows() bool {
	return !h.lockDSN.Set() || h.lockDSN.Address() == h.DSN.Address()
}

// Takeover says how Phorge's own delivery is kept from sending.
type Takeover string

// The values of WAYBILL_HERALD_TAKEOVER.
const (
	TakeoverLock     Takeover = "lock"     // Phorge stands back at its own user locks
	TakeoverExternal Takeover = "external" // Phorge's delivery is switched off by other means
)

// Temporal says how to reach the Temporal service.
type Temporal struct {
	Address    string // host:port, or dns:///host:port
	Namespace  string
	CAFile     string // roots that vouch for the server; empty: the system's
	CertFile   string // client certificate; set together with KeyFile or not at all
	KeyFile    string
	ServerName string // expected name in the server's certificate
	APIKey     Secret
}

// API holds the settings of the HTTP interface.
type API struct {
	Listen string // host:port; an empty host means every interface
	Token  Secret // unset: the diagnostics and the metrics are open
}

// Keys holds the key-encryption keys of the subscription lane.
type Keys struct {
	File string // empty: the subscription lane is off
	List []KEK  // in the order of the file: the first wraps, all unwrap
}

// KEK is one key-encryption key of WAYBILL_KEK_FILE.
type KEK struct {
	ID  string
	Key Secret // Reveal gives the 32 raw bytes
}

// Egress holds the address rules of the subscription lane.
type Egress struct {
	Allow []netip.Prefix
	Deny  []netip.Prefix // in addition to the built-in list
	Ports []uint16
}

// Log says what is logged and how.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // json or console; empty: console on a terminal, json elsewhere
}
