package acceptance

import (
	"strings"
	"testing"

	"waybill/test/scenario"
)

// With no network opened, Waybill denies what Phorge's default blacklist
// denies, and the row says so. The recorded addresses are somebody's, so this
// runs in a network namespace.
func TestRecordedBlacklistCasesHold(t *testing.T) {
	t.Parallel()
	needsNamespace(t)
	cases := corpus(t, func(c recorded) bool { return c.Setup.Blacklist == "default" })
	if len(cases) < 9 {
		t.Fatalf("only %d cases", len(cases))
	}
	site := scenario.NewSite(t, &program)
	enter(t, site, cases)
	// These are there and listening: only the list denies them.
	serve := isolate(t, site, map[string]string{"WAYBILL_HERALD_ALLOW": ""}, "192.0.2.2", "172.16.0.1", "100.64.0.1")
	rows := drained(t, site, cases)
	judge(t, rows, serve.requests(t), cases)
}

// A list of one's own replaces the default one; and a redirect to an address
// that it denies is not followed, whatever Phorge did.
func TestRecordedBlacklistOfItsOwnHolds(t *testing.T) {
	t.Parallel()
	needsNamespace(t)
	cases := corpus(t, func(c recorded) bool { return c.Setup.Blacklist != nil && c.Setup.Blacklist != "default" })
	for _, c := range cases {
		site := scenario.NewSite(t, &program)
		enter(t, site, []recorded{c})
		serve := isolate(t, site, map[string]string{
			"WAYBILL_HERALD_ALLOW": "", "WAYBILL_HERALD_DENY": networks(t, c.Setup.Blacklist),
		}, "192.0.2.2")
		rows := drained(t, site, []recorded{c})
		judge(t, rows, serve.requests(t), []recorded{c})
	}
	if len(cases) == 0 {
		t.Error("no such case is recorded")
	}
}

// needsNamespace leaves the test out where the machine refuses namespaces: it
// must not be tried against the real addresses instead.
func needsNamespace(t *testing.T) {
	t.Helper()
	if err := canIsolate(); err != nil {
		t.Skipf("this machine gives tests no network namespace (a container without the right?): %v", err)
	}
}

// networks is a recorded list as Waybill's setting.
func networks(t *testing.T, list any) string {
	t.Helper()
	var all []string
	for _, n := range list.([]any) {
		all = append(all, n.(string))
	}
	return strings.Join(all, ",")
}
