package devstack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// libfaketimes are where Linux distributions put libfaketime's variant for
// programs with threads (Debian and Ubuntu; Fedora; Arch; built from source).
var libfaketimes = []string{
	"/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib64/faketime/libfaketimeMT.so.1",
	"/usr/lib/faketime/libfaketimeMT.so.1", "/usr/local/lib/faketime/libfaketimeMT.so.1",
}

// clock is a server's clock that can be moved while the server runs: a library
// loaded in front of the C library answers for the time of day, and reads a
// file at each question. The zero value is the machine's clock.
type clock struct{ library, file string }

// newClock makes a clock that shows the machine's time until it is moved.
func newClock(file string) (clock, error) {
	for _, pattern := range libfaketimes {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			c := clock{library: found[0], file: file}
			return c, c.set(0)
		}
	}
	return clock{}, fmt.Errorf("%w: libfaketime gives the database a clock of its own, and is in none of %v; "+
		"install it (Debian, Ubuntu: apt-get install faketime; Fedora: dnf install libfaketime)", ErrMissing, libfaketimes)
}

// set shows the machine's time with an offset from now on. The file is replaced
// as a whole: a reader must never find half a number.
func (c clock) set(ahead time.Duration) error {
	fresh := c.file + ".new"
	text := fmt.Sprintf("%+d\n", int64(ahead/time.Second))
	if err := os.WriteFile(fresh, []byte(text), 0o600); err != nil {
		return diskError(err)
	}
	return diskError(os.Rename(fresh, c.file))
}

// environment is what makes a program use the clock. Only the time of day is
// moved: what a server measures by its monotonic clock (its timeouts) goes on,
// and so do the times of files.
func (c clock) environment() []string {
	if c.library == "" {
		return nil
	}
	return []string{
		"LD_PRELOAD=" + c.library, "FAKETIME_TIMESTAMP_FILE=" + c.file, "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1",
	}
}

// SetClock moves the clock of a server that has one of its own, in one step and
// at once: so far ahead of the machine's, or behind it where negative. Whole
// seconds, as in UNIX_TIMESTAMP().
func (m *MariaDB) SetClock(ahead time.Duration) error {
	if m.clock.library == "" {
		return errors.New("the server was started without a clock of its own")
	}
	return m.clock.set(ahead)
}
