package ledger_test

import (
	"testing"

	"waybill/internal/ledger"
)

// Sessions say who takes part and with how many hooks.
func TestSessions(t *testing.T) {
	l, _ := migrated(t)
	a, b := ledger.Session{Instance: "a", AliveLock: "l1", Feeds: true}, ledger.Session{Instance: "b", AliveLock: "l2"}
	must(t, l.Joined(t.Context(), a))
	must(t, l.Joined(t.Context(), b))
	for hook, instance := range map[string]string{"h1": "a", "h2": "a", "h3": "gone"} {
		_, err := l.Acquired(t.Context(), ledger.Owner{HookPHID: hook, Instance: instance, Connection: 7})
		must(t, err)
	}
	must(t, l.Released(t.Context(), ledger.Owner{HookPHID: "h2", Instance: "a", Connection: 7}))
	expect := func(want ...ledger.Session) {
		t.Helper()
		got, err := l.Sessions(t.Context())
		if err != nil || len(got) != len(want) {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%+v, want %+v", got[i], want[i])
			}
		}
	}
	a.Owned = 1
	expect(a, b)
	// The next session of an instance replaces the one before, whose late end
	// does not concern it.
	next := a
	next.AliveLock = "l3"
	must(t, l.Joined(t.Context(), next))
	leave := func(s ledger.Session, want bool) {
		t.Helper()
		if removed, err := l.Left(t.Context(), s); err != nil || removed != want {
			t.Errorf("removed %v, %v, want %v", removed, err, want)
		}
	}
	leave(a, false)
	expect(next, b)
	leave(next, true)
	leave(next, false)
	expect(b)
}
