// Package workflows holds the decisions over time, and nothing else: when to
// claim, when to send, how long to rest, what an operator's signal means. It
// touches the world only through activities, and reads as a story; options and
// descriptions stand apart from it. Starters and workers import it.
package workflows

import (
	"strings"

	"go.temporal.io/sdk/temporal"
)

// TaskQueue is where an installation's workflow tasks go, and activities that
// any of its processes may run. Tasks that only a hook's owner may run go to
// that owner's own queue.
func TaskQueue(installation string) string { return queuePrefix + installation }

const queuePrefix = "waybill-"

// Installation is whose task queue that is; "" when it is none of Waybill's.
func Installation(taskQueue string) string {
	id, ok := strings.CutPrefix(taskQueue, queuePrefix)
	if !ok {
		return ""
	}
	return id
}

// Search attributes, registered by `waybill migrate`, `serve` and `dev`.
var (
	// AttributeLane is "herald" or "subscription".
	AttributeLane = temporal.NewSearchAttributeKeyKeyword("WaybillLane")
	// AttributeHook is the hook's PHID.
	AttributeHook = temporal.NewSearchAttributeKeyKeyword("WaybillHook")
	// AttributeSubscription is the subscription's id.
	AttributeSubscription = temporal.NewSearchAttributeKeyKeyword("WaybillSubscription")
	// AttributeState is how things stand: sending, retrying, delivered, failed …
	AttributeState = temporal.NewSearchAttributeKeyKeyword("WaybillState")
)

// LaneHerald is the value of AttributeLane for everything about a Phorge queue.
const LaneHerald = "herald"

// Signals.
const (
	// SignalPause stops new attempts of a hook. Its argument is the reason, or
	// {"by":..,"reason":..}.
	SignalPause = "pause"
	// SignalRelease gives a hook back to Phorge, whose own worker delivers then.
	// Its argument is that of a pause; the two replace each other.
	SignalRelease = "release"
	// SignalResume lets a paused hook continue, and takes a released one back.
	SignalResume = "resume"
	// SignalRefresh says that a command has written the pause table, and that the
	// workflow is to show what stands there. It changes nothing.
	SignalRefresh = "refresh"
	// SignalRetire ends the workflow of a hook that no longer exists.
	SignalRetire = "retire"
	// SignalRetryNow ends a request's rest after a failure.
	SignalRetryNow = "retry-now"
)

// QueryState returns how a hook stands.
const QueryState = "state"

// RequestID is the workflow id of a request, HookID that of a hook.
func RequestID(phid string) string { return "request/" + phid }

// HookID is the workflow id of a hook.
func HookID(phid string) string { return "hook/" + phid }
