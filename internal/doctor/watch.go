package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// CheckConsumers is the look at who else works on the queue.
const CheckConsumers = "consumers"

// Seen is a row at one moment.
type Seen struct {
	PHID, Hook, Status, Result string
	// Called is when the last call of it ended, Modified when it was last saved.
	Called, Modified int64
}

// Change is what became of a row between two looks.
type Change struct {
	PHID, Hook string
	// Delivered: it got a result of a call. Otherwise it was saved while it waits,
	// as a claim does.
	Delivered bool
}

// Changes compares two looks at the same rows, by PHID. What Phorge itself fails
// without a call (a disabled hook, silence) is nobody's delivery.
func Changes(before, after map[string]Seen) (all []Change) {
	for phid, b := range before {
		a, there := after[phid]
		if !there || b.Status != "queued" || a == b {
			continue
		}
		called := a.Result != "none" && (a.Called != b.Called || a.Result != b.Result || a.Status != b.Status)
		if called || a.Status == "queued" {
			all = append(all, Change{PHID: phid, Hook: b.Hook, Delivered: called})
		}
	}
	slices.SortFunc(all, func(x, y Change) int { return strings.Compare(x.PHID, y.PHID) })
	return all
}

// Watched is what a while of watching has shown.
type Watched struct {
	For time.Duration
	// Foreign are the changes that no process of Waybill made.
	Foreign []Change
	// Ours are the hooks whose locks Waybill held all the time.
	Ours map[string]bool
	// Locked: a lock was seen that Waybill does not hold, of a hook with such a change.
	Locked bool
}

// Consumers judges who else delivers.
func Consumers(w Watched) []Finding {
	var delivered, claimed, against []string
	for _, c := range w.Foreign {
		switch {
		case w.Ours[c.Hook]:
			against = append(against, c.PHID)
		case c.Delivered:
			delivered = append(delivered, c.PHID)
		default:
			claimed = append(claimed, c.PHID)
		}
	}
	var all []Finding
	if len(against) > 0 {
		all = append(all, found(CheckConsumers, Problem,
			fmt.Sprintf("%s of hooks whose lock Waybill holds changed by somebody else: %s.", counted(len(against), "row"), some(against)),
			"Stop the other consumer (gorge-webhook asks for no lock). If there is none, Phorge keeps its locks on another server: set WAYBILL_HERALD_LOCK_DSN."))
	}
	if len(claimed) > 0 {
		all = append(all, found(CheckConsumers, Warning,
			fmt.Sprintf("%s claimed by somebody else, as Phorge's own worker does not: %s.", counted(len(claimed), "row"), some(claimed)),
			"Stop the other consumer before Waybill starts (docs/handover.md)."))
	}
	if len(delivered) > 0 {
		all = append(all, delivers(len(delivered), w.Locked))
	}
	if len(all) == 0 {
		return []Finding{found(CheckConsumers, OK, fmt.Sprintf("Nobody else has changed a waiting row in %s.", w.For.Round(time.Second)), "")}
	}
	return all
}

// delivers speaks of deliveries that are nobody's fault: Waybill does not own the hooks.
func delivers(n int, locked bool) Finding {
	text := counted(n, "row") + " delivered by somebody else, Phorge's own worker as a rule"
	if locked {
		return found(CheckConsumers, OK, text+"; its lock is seen here, so it will stand back for Waybill's.", "")
	}
	return found(CheckConsumers, Note, text+"; no lock of it was seen meanwhile, which short calls hardly show.",
		"To be sure, watch again during a call that takes a second (--watch 1m).")
}
