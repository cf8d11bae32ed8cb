package scenario

import "time"

// Fault is something that was done to a process, or around it, and that may
// leave the outcome of its calls unknown or take its locks away.
type Fault struct {
	Kind Kind
	Who  string
	// PID is the process it concerns, 0 for every one.
	PID int
	// From and To are when it began and when it was over.
	From, To time.Time
}

// Kind is what was done.
type Kind string

// The kinds of faults.
const (
	Killed  Kind = "SIGKILL"          // the process ended
	Stopped Kind = "SIGSTOP"          // it stood still, and went on
	Cut     Kind = "connections cut"  // those to the database, at once
	Frozen  Kind = "database unheard" // its connections carried nothing
	Away    Kind = "database away"    // the server was not there, or not for it
)

// The stated limits (docs/compatibility.md) and the times in which each may
// show. Beyond them nothing is excused.
const (
	// detects is how long a process may not know that its lock session is lost:
	// its ping, once a second, and what a busy machine adds.
	detects = 3 * time.Second
	// goesOn is how soon after it runs again a process that stood still between
	// its last check and the wire has sent what it was about to send.
	goesOn = time.Second
)

// concerns says whether a fault is one of a process; 0 is one that was not found.
func (f Fault) concerns(pid int) bool { return f.PID == 0 || pid == 0 || f.PID == pid }

// during says whether a fault and a time have a moment in common. A zero end is
// one that has not come.
func (f Fault) during(from, to time.Time) bool {
	return !f.To.Before(from) && (to.IsZero() || !f.From.After(to))
}

// standing is the standstill of its caller that a call was made in or around:
// such a process may overlap with its successor, and may repeat a row that this
// one has delivered.
func (e Evidence) standing(c Call) bool {
	for _, f := range e.Faults {
		if f.Kind == Stopped && c.Caller == ByWaybill && f.concerns(c.PID) && f.during(c.Start.Add(-goesOn), c.End) {
			return true
		}
	}
	return false
}

// unlocked says whether one of two calls is Phorge's, and the lock of the other's
// caller was lost just before that or in the first call: each may then go on for
// as long as it does not know.
func (e Evidence) unlocked(first, second Call) bool {
	if first.Caller == second.Caller {
		return false
	}
	for _, f := range e.Faults {
		if f.concerns(first.PID) && f.during(first.Start.Add(-detects), second.Start) && !f.To.Before(second.Start.Add(-detects)) {
			return true
		}
	}
	return false
}

// limits says whether two calls may have been in progress at once.
func (e Evidence) limits(first, second Call) bool {
	return e.standing(first) || e.standing(second) || e.unlocked(first, second)
}

// stepped says whether the database's clock was moved between two moments: what
// it counts is then shorter or longer than it says.
func (e Evidence) stepped(from, to time.Time) bool {
	for _, at := range e.Stepped {
		if !at.Before(from) && !at.After(to) {
			return true
		}
	}
	return false
}
