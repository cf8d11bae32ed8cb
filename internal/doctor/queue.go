package doctor

import (
	"fmt"
	"time"
)

// The checks of the queue and its hooks.
const (
	CheckQueue     = "queue"
	CheckLoad      = "load"
	CheckRows      = "rows"
	CheckSilence   = "silence"
	CheckAddresses = "addresses"
	CheckLocks     = "locks"
)

// stale is the age from which a waiting row is worth a look: retries of a
// receiver that is down are younger for a while.
const stale = 15 * time.Minute

// Queue judges how many rows wait and for how long the oldest does.
func Queue(waiting int64, oldest time.Duration) Finding {
	text := fmt.Sprintf("%s waiting", counted(int(waiting), "row"))
	if waiting == 0 {
		return found(CheckQueue, OK, "No row is waiting.", "")
	}
	text += fmt.Sprintf(", the oldest for %s.", oldest.Round(time.Second))
	if oldest > stale {
		return found(CheckQueue, Warning, text, "`waybill hooks list` shows whose they are and why they wait.")
	}
	return found(CheckQueue, OK, text, "")
}

const (
	// taskRest is how long a task of Phorge's rests that could not have the lock.
	taskRest = 15
	// heavy is from how many tasks a second on a taskmaster is kept busy by them: it
	// made some 90 a second on two shared cores.
	heavy = 20
)

// Load is what Phorge's own workers do while Waybill holds the locks: each
// waiting row is a task that asks for its hook's lock every 15 s.
func Load(waiting int64, external bool) Finding {
	if external {
		return found(CheckLoad, OK, "Phorge's delivery is switched off otherwise (WAYBILL_HERALD_TAKEOVER=external): its workers ask for no lock.", "")
	}
	tasks := float64(waiting) / taskRest
	text := fmt.Sprintf("While Waybill delivers, Phorge's workers ask for the hooks' locks %.1f times a second.", tasks)
	if tasks >= heavy {
		return found(CheckLoad, Warning, text, "Let the queue drain first, or use a Phorge that can switch its own delivery off (docs/handover.md).")
	}
	return found(CheckLoad, OK, text, "")
}

// OddRows are rows that Waybill leaves alone, or that look like nobody meant
// them, by what is odd.
type OddRows map[string][]string

// Rows judges them, of so many that were looked at.
func Rows(odd OddRows, looked int) []Finding {
	var all []Finding
	for what, phids := range odd {
		all = append(all, found(CheckRows, Warning, fmt.Sprintf("%s %s: %s.", counted(len(phids), "row"), what, some(phids)),
			"`waybill requests show PHID` says what becomes of each."))
	}
	if len(all) == 0 {
		return []Finding{found(CheckRows, OK, fmt.Sprintf("Nothing odd in %s of the queue.", counted(looked, "row")), "")}
	}
	return all
}

// Silence judges how many rows Phorge has failed as silent in the last ten
// minutes, and whether Waybill holds all hooks.
func Silence(silenced int, held bool) Finding {
	switch {
	case silenced > 0 && !held:
		return found(CheckSilence, Problem, fmt.Sprintf("Phorge has failed %s as silent in the last ten minutes: phabricator.silent is on.", counted(silenced, "row")),
			"What waits would be sent all the same: `waybill hooks pause --all` before Waybill starts.")
	case silenced > 0:
		return found(CheckSilence, Warning, "Phorge's site is silent, and all hooks are paused.", "`waybill hooks resume --all` when phabricator.silent is off.")
	}
	return found(CheckSilence, OK, "No row was failed as silent in the last ten minutes.", "")
}

// Addresses judges hooks whose calls would not leave, by why.
func Addresses(denied, unresolved, malformed []string, of int) []Finding {
	var all []Finding
	add := func(phids []string, what, advice string) {
		if len(phids) > 0 {
			all = append(all, found(CheckAddresses, Warning, fmt.Sprintf("%s %s: %s.", counted(len(phids), "hook"), what, some(phids)), advice))
		}
	}
	add(denied, "that would be refused for the address", "Open the network in WAYBILL_HERALD_ALLOW if it is meant; Phorge's own list is security.outbound-blacklist.")
	add(unresolved, "whose name does not resolve here", "Check the name, and the resolver of the machine that runs the worker.")
	add(malformed, "whose address may not be called", "Its rows are failed with the code uri, as Phorge does.")
	if len(all) == 0 {
		return []Finding{found(CheckAddresses, OK, fmt.Sprintf("The addresses of %s can be called.", counted(of, "enabled hook")), "")}
	}
	return all
}
