package devstack_test

import (
	"context"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
)

// ahead is how far the server's clock is ahead of this process's.
func ahead(t *testing.T, m *devstack.MariaDB) time.Duration {
	t.Helper()
	before := time.Now()
	at := time.Unix(number(t, stacktest.Open(t, m, ""), "SELECT UNIX_TIMESTAMP()"), 0)
	// The server cuts to whole seconds.
	return at.Sub(before).Round(time.Second)
}

// about allows for the cut-off fraction of a second and the question's time.
func about(got, want time.Duration) bool {
	return got >= want-2*time.Second && got <= want+2*time.Second
}

// The library accepts what it does not understand and then changes nothing: only
// the effect counts.
func TestMariaDBClockMovesWhileTheServerRuns(t *testing.T) {
	m := startMariaDB(t, devstack.MariaDBConfig{Dir: t.TempDir(), Ephemeral: true, OwnClock: true})
	for _, d := range []time.Duration{0, 40 * time.Second, -40 * time.Second, time.Hour, -time.Hour} {
		if err := m.SetClock(d); err != nil {
			t.Fatal(err)
		}
		if got := ahead(t, m); !about(got, d) {
			t.Errorf("the clock is %v ahead, was set to %v", got, d)
		}
	}
	m.Kill()
	if err := m.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ahead(t, m); !about(got, -time.Hour) {
		t.Errorf("after a restart the clock is %v ahead, was set to an hour behind", got)
	}
}

// An idle session ends by another clock: a step of the time of day must neither
// end it early nor keep it. (Waits for user locks of more than a second do go by
// the time of day in MariaDB; Waybill asks for its locks without waiting.)
func TestMariaDBClockLeavesIdleSessionsAlone(t *testing.T) {
	m := startMariaDB(t, devstack.MariaDBConfig{Dir: t.TempDir(), Ephemeral: true, OwnClock: true})
	db := stacktest.Open(t, m, "")
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		holder, err := stacktest.Open(t, m, "").Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := holder.ExecContext(t.Context(), "SET SESSION wait_timeout = 3"); err != nil {
			t.Fatal(err)
		}
		idle := time.Now()
		if _, err := holder.ExecContext(t.Context(), "DO GET_LOCK('held', 0)"); err != nil {
			t.Fatal(err)
		}
		if err := m.SetClock(step); err != nil {
			t.Fatal(err)
		}
		awaitFree(t, func() bool { return number(t, db, "SELECT IS_FREE_LOCK('held')") == 1 })
		if took := time.Since(idle); took < 2900*time.Millisecond {
			t.Errorf("a step by %v ended a session that may idle for three seconds after %v", step, took)
		}
	}
}

func awaitFree(t *testing.T, free func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); !free(); {
		select {
		case <-ctx.Done():
			t.Fatal("an idle session did not end")
		case <-tick.C:
		}
	}
}

func TestMariaDBWithoutAClockOfItsOwnSaysSo(t *testing.T) {
	m := startMariaDB(t, devstack.MariaDBConfig{Dir: t.TempDir(), Ephemeral: true})
	if err := m.SetClock(time.Hour); err == nil {
		t.Error("the machine's clock was said to be moved")
	}
	if got := ahead(t, m); !about(got, 0) {
		t.Errorf("the clock is %v ahead", got)
	}
}
