package doctor

import "fmt"

// Locked is who holds a hook's lock.
type Locked struct {
	Hook string
	// Holder is the server's id of the connection, 0 for none; Who is its user and
	// host where the server tells.
	Holder uint64
	Who    string
	// Owner is the instance whose record stands, empty for none, and Connection
	// the one that it took the lock on.
	Owner      string
	Connection uint64
}

// waybills says that the lock is held by the process that recorded itself.
func (l Locked) waybills() bool { return l.Holder != 0 && l.Owner != "" && l.Holder == l.Connection }

// Session is what was seen of the server where Phorge's locks live.
type Session struct {
	// Several: a connection holds more than one lock.
	Several bool
	// Seen: a lock of one connection is seen by another one.
	Seen bool
	// Beside: it is the server that has the rows.
	Beside bool
}

// Locks judges the lock server and who holds what.
func Locks(s Session, held []Locked) []Finding {
	var all []Finding
	switch {
	case !s.Several:
		all = append(all, found(CheckLocks, Problem, "A connection of the lock server holds one lock only.",
			"Waybill needs MySQL 5.7.5 or MariaDB 10.0.2 there, and no proxy that shares connections."))
	case !s.Seen:
		all = append(all, found(CheckLocks, Problem, "A lock that one connection holds is not seen by another.",
			"Name the server itself in WAYBILL_HERALD_LOCK_DSN: a proxy spreads connections over several, or shares them."))
	case !s.Beside:
		all = append(all, found(CheckLocks, Note, "Locks live on another server than the rows: a claim cannot ask for the lock in its own statement.", ""))
	}
	byOwner, others, free := map[string]int{}, []string{}, 0
	for _, l := range held {
		switch {
		case l.waybills():
			byOwner[l.Owner]++
		case l.Holder != 0:
			others = append(others, fmt.Sprintf("%s (connection %d%s)", l.Hook, l.Holder, by(l.Who)))
		default:
			free++
		}
	}
	for owner, n := range byOwner {
		all = append(all, found(CheckLocks, OK, fmt.Sprintf("%s owned by %s.", counted(n, "hook"), owner), ""))
	}
	if len(others) > 0 {
		all = append(all, found(CheckLocks, Note, "Held by no process of Waybill: "+some(others)+".",
			"A worker of Phorge's holds a hook's lock while it calls. One that stays is another installation or somebody's session."))
	}
	if free > 0 {
		all = append(all, found(CheckLocks, OK, counted(free, "hook")+" free.", ""))
	}
	return all
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " of " + who
}
