package scenario_test

import (
	"testing"

	"waybill/test/scenario"
)

// The middle part was read off a real Phorge with the default namespace.
func TestLockNameIsPhorges(t *testing.T) {
	got := scenario.LockName("phabricator", "PHID-HWBH-aaaaaaaaaaaaaaaaaaaa")
	const want = "ph:phabric-6rILUDHKjHKu:webhook-"
	if len(got) != len(want)+12 || got[:len(want)] != want {
		t.Errorf("got %q", got)
	}
}
