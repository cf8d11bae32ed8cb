package devstack

import "fmt"

// A fresh MariaDB takes 115 MB (measured, 10.11) and a Temporal 1 MB that grows
// by some 10 KB a delivery. The rest is air for an evening.
const (
	firstStartMB = 250
	laterStartMB = 60
)

// CheckSpace reports a file system with too little room to start on, with
// ErrDiskFull. Both servers handle a full disk late and badly: MariaDB waits
// for somebody to make room and Temporal answers nothing.
func CheckSpace(dir string, first bool) error {
	need := uint64(laterStartMB)
	if first {
		need = firstStartMB
	}
	return enoughSpace(dir, need)
}

func enoughSpace(dir string, need uint64) error {
	free, known := freeMB(dir)
	if !known || free >= need {
		return nil
	}
	return fmt.Errorf("%w: %s has %d MB free and a start needs %d MB; make room, or work in a copy on another disk",
		ErrDiskFull, dir, free, need)
}
