package herald

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestHookDisabled(t *testing.T) {
	for status, want := range map[string]bool{
		"disabled": true, "enabled": false, "firehose": false, "weird": false, "": false, "Disabled": false,
	} {
		if got := (Hook{Status: status}).Disabled(); got != want {
			t.Errorf("%q: got %v", status, got)
		}
	}
}

func TestHookPrintsNoSecret(t *testing.T) {
	h := Hook{PHID: "PHID-HWBH-a", Name: `n"é`, URI: "http://s3cret/", Status: "enabled", HMACKey: []byte("s3cret")}
	marshalled, err := json.Marshal([]any{h, &h, map[string]Hook{"h": h}})
	if err != nil {
		t.Fatal(err)
	}
	printed := string(marshalled)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		printed += fmt.Sprintf(verb+verb, h, &h) + fmt.Sprintf(verb, struct{ H Hook }{h})
	}
	for _, secret := range []string{"s3cret", fmt.Sprintf("%x", "s3cret"), "115 51 99"} {
		if strings.Contains(printed, secret) {
			t.Errorf("%q shows in %s", secret, printed)
		}
	}
	if !strings.Contains(printed, "PHID-HWBH-a") {
		t.Error("the hook is not named either")
	}
}

func TestLockName(t *testing.T) {
	name := LockName("phabricator", "PHID-HWBH-nfox4nqz65waytakuo5w")
	if !strings.HasPrefix(name, "ph:phabric-6rILUDHKjHKu:webhook-") || len(name) != 44 {
		t.Errorf("got %s", name)
	}
	// Computed apart from this code, with Python's hashlib.
	const want = "ph:dev-Q6YIDu5LBDFl:webhook-QBokMryimyyp"
	if got := LockName("dev", "PHID-HWBH-a"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if LockName("phabricator2", "a") == LockName("phabricator3", "a") {
		t.Error("namespaces with the same beginning share locks")
	}
	// MySQL refuses lock names beyond 64 bytes.
	if got := LockName(strings.Repeat("n", 500), strings.Repeat("p", 500)); len(got) > 64 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestTablesMatchPhorge(t *testing.T) {
	type table struct{ Database, Table string }
	var file struct {
		Types map[string]struct{ Object, Transactions *table } `json:"types"`
	}
	readJSON(t, "testdata/types.json", &file)
	if len(file.Types) < 100 || len(file.Types) != len(objectTables) {
		t.Fatalf("%d types in the file, %d compiled", len(file.Types), len(objectTables))
	}
	same := func(got *Table, want *table) bool {
		if got == nil || want == nil {
			return got == nil && want == nil
		}
		return "{namespace}_"+got.Database == want.Database && got.Name == want.Table
	}
	for kind, want := range file.Types {
		got, ok := Tables(kind)
		if !ok || !same(got.Object, want.Object) || !same(got.Transactions, want.Transactions) {
			t.Errorf("%s: got %+v", kind, got)
		}
	}
	for _, kind := range []string{"", "????", "task", "NONE"} {
		if got, ok := Tables(kind); ok || got != (ObjectTables{}) {
			t.Errorf("%q is known", kind)
		}
	}
}

// A caller that changes what it got must not change the table.
func TestTablesAreCopies(t *testing.T) {
	got, _ := Tables("TASK")
	got.Object.Name = "x"
	if again, _ := Tables("TASK"); again.Object.Name != "maniphest_task" {
		t.Errorf("got %s", again.Object.Name)
	}
}

func TestSpeakable(t *testing.T) {
	for phid, want := range map[string]bool{
		"PHID-HWBH-aaaaaaaaaaaaaaaaaaaa": true, "": true, "with space": true, "~": true,
		"ü": false, "\x80": false, "\n": false, "a\x00b": false, "\x7f": false,
	} {
		if Speakable(phid) != want {
			t.Errorf("%q: %v", phid, !want)
		}
	}
}
