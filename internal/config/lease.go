package config

import (
	"fmt"
	"net"
	"net/netip"
	"time"
)

// ScheduleToStart is the longest a send may wait for its worker: an activity
// that has not started by then is known to be unsent. It is part of the lease.
const ScheduleToStart = 5 * time.Second

// Lease is the claim lease that holds, in whole seconds because the rows count
// in seconds, and a warning when the configured one was too short. A lease
// has to cover the wait for a worker, the whole exchange and the write of its
// result; otherwise a second worker could claim a row that is being sent.
func (c Config) Lease() (effective time.Duration, warning string) {
	h := c.Herald
	need := wholeSeconds(ScheduleToStart + h.DeliveryTimeout + h.WriteAllowance)
	if h.ClaimLease >= need {
		return wholeSeconds(h.ClaimLease), ""
	}
	return need, fmt.Sprintf(
		"WAYBILL_HERALD_CLAIM_LEASE: %s is too short and was raised to %s: %s to start + %s delivery timeout + %s write allowance",
		compact(h.ClaimLease), compact(need), compact(ScheduleToStart), compact(h.DeliveryTimeout), compact(h.WriteAllowance))
}

// wholeSeconds rounds up: a longer lease is safe, a shorter one is not.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// weakToken is the length below which a token is called short. 16 hex digits
// are 64 bits, out of reach for guessing over HTTP.
const weakToken = 16

// Warnings are the things that work and should not stay: one sentence each,
// without secrets. Load must have succeeded.
func (c Config) Warnings() []string {
	var warnings []string
	if _, raised := c.Lease(); raised != "" {
		warnings = append(warnings, raised)
	}
	if !c.API.Token.Set() && !loopback(c.API.Listen) {
		warnings = append(warnings, "WAYBILL_TOKEN: not set, and WAYBILL_LISTEN is reachable from other machines: counts and metrics are open to them")
	}
	if c.API.Token.Set() && len(c.API.Token.Reveal()) < weakToken {
		warnings = append(warnings, "WAYBILL_TOKEN: shorter than 16 characters and easy to guess; openssl rand -hex 32 makes a good one")
	}
	return warnings
}

// loopback says whether only this machine can reach a listening address.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
