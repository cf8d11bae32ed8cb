package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// secrets is an environment in which every secret is recognisable.
func secrets(t *testing.T) (Config, []string) {
	t.Helper()
	writeKeyFiles(t)
	c := mustLoad(t, env{
		"WAYBILL_HERALD_DSN":       "h:hunter2@tcp(db)/x_herald?connectionAttributes=hunter2:x",
		"WAYBILL_HERALD_LOCK_DSN":  "l:hunter2@tcp(master)/",
		"WAYBILL_DSN":              "w:hunter2@tcp(db)/waybill",
		"WAYBILL_TOKEN":            "hunter2hunter2hunter2",
		"WAYBILL_TEMPORAL_API_KEY": "hunter2.api",
		"WAYBILL_KEK_FILE":         "testdata/kek",
	})
	return c, []string{"hunter2", strings.Repeat("k", 32), "a2tra2tr"}
}

func TestSecretsNeverShow(t *testing.T) {
	c, words := secrets(t)
	inside := struct{ hidden Config }{c} // fmt may not call methods in here
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{
		"%v": fmt.Sprintf("%v", c), "%+v": fmt.Sprintf("%+v", c), "%#v": fmt.Sprintf("%#v", c),
		"%x":        fmt.Sprintf("%x", c.API.Token),
		"hidden %v": fmt.Sprintf("%v", inside), "hidden %+v": fmt.Sprintf("%+v", inside), "hidden %#v": fmt.Sprintf("%#v", inside),
		"json": string(encoded), "entries": fmt.Sprintf("%+v", c.Entries()),
		"warnings": strings.Join(c.Warnings(), "\n"),
		"dsn":      fmt.Sprintf("%v %+v %#v %s", c.Ledger, c.Ledger, c.Ledger, c.Ledger),
		"secret":   fmt.Sprintf("%v %+v %#v %s %q", c.API.Token, c.API.Token, c.API.Token, c.API.Token, c.API.Token),
	}
	for way, text := range shown {
		for _, word := range words {
			if strings.Contains(text, word) {
				t.Errorf("%s shows %q", way, word)
			}
		}
	}
	// What operators need to see stays visible.
	for _, word := range []string{"h:********@tcp(db:3306)/x_herald", "w:********@tcp(db:3306)/waybill"} {
		if !strings.Contains(shown["entries"], word) {
			t.Errorf("the entries lack %q", word)
		}
	}
}

func TestSecretsAreThereForTheirPurpose(t *testing.T) {
	c, _ := secrets(t)
	if c.API.Token.Reveal() != "hunter2hunter2hunter2" || c.Temporal.APIKey.Reveal() != "hunter2.api" {
		t.Error("a secret got lost")
	}
	if got := c.Herald.DSN.Driver().Passwd; got != "hunter2" {
		t.Errorf("password %q", got)
	}
}

func TestUnsetSecret(t *testing.T) {
	unset := NewSecret("")
	if unset.Set() || unset.Reveal() != "" || unset.String() != "" {
		t.Errorf("unset secret: %#v", unset)
	}
	if encoded, err := json.Marshal(unset); err != nil || string(encoded) != `""` {
		t.Errorf("JSON %s, %v", encoded, err)
	}
}

func TestUnknownNamesAreGuessed(t *testing.T) {
	got := Unknown([]string{
		"PATH=/bin", "WAYBILL_TOKEN=fine", "WAYBILL_TOKN=hunter2", "WAYBILL_HERALD_DNS=hunter2",
		"WAYBILL_HERALD_POLL_INTERVALL=1s", "WAYBILL_FLUX_CAPACITOR=hunter2", "WAYBILL_=x", "WAYBILL_LISTEN_ADDR",
		"WAYBILL_TOKN=again", "waybill_token=x", "MY_WAYBILL_TOKEN=x",
	})
	want := []string{
		"WAYBILL_: no such variable",
		"WAYBILL_FLUX_CAPACITOR: no such variable",
		"WAYBILL_HERALD_DNS: no such variable; did you mean WAYBILL_HERALD_DSN?",
		"WAYBILL_HERALD_POLL_INTERVALL: no such variable; did you mean WAYBILL_HERALD_POLL_INTERVAL?",
		"WAYBILL_LISTEN_ADDR: no such variable",
		"WAYBILL_TOKN: no such variable; did you mean WAYBILL_TOKEN?",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, v := range variables {
		if warnings := Unknown([]string{v.name + "=x"}); warnings != nil {
			t.Errorf("%s is unknown: %q", v.name, warnings)
		}
	}
	if warnings := Unknown([]string{"WAYBILL_TEMPORAL_BIN=x"}); warnings != nil {
		t.Errorf("what `waybill dev` reads is unknown: %q", warnings)
	}
}

func TestEdits(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"DNS", "DSN", 2}, {"same", "same", 0}} {
		if got := edits(test.a, test.b); got != test.want {
			t.Errorf("edits(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
		if edits(test.a, test.b) != edits(test.b, test.a) {
			t.Errorf("edits(%q, %q) depends on the order", test.a, test.b)
		}
	}
}

func TestDescribeHoldsNoValues(t *testing.T) {
	described := Describe()
	if len(described) != len(variables) {
		t.Fatalf("%d entries", len(described))
	}
	for _, e := range described {
		if e.Value != "" || e.Source != "" || e.Default == "" || e.Help == "" {
			t.Errorf("entry %+v", e)
		}
	}
}

// FuzzLoad puts arbitrary text into every variable at once and watches the
// promises: no panic, one line per fault, no secret in it.
func FuzzLoad(f *testing.F) {
	for _, test := range valid {
		f.Add(test.value)
	}
	for _, test := range invalid {
		if len(test.value) < 1000 {
			f.Add(test.value)
		}
	}
	f.Fuzz(func(t *testing.T, value string) {
		// Only names of files below the empty directory can be opened.
		if _, err := os.Stat(strings.TrimSpace(value)); err == nil {
			t.Skip("names a real file")
		}
		c, err := Load(func(string) string { return value })
		if err == nil {
			_ = c.Entries()
			_ = c.Warnings()
			return
		}
		var faults Faults
		if !errors.As(err, &faults) || len(faults) != len(strings.Split(err.Error(), "\n")) {
			t.Fatalf("not one line per fault: %q", err)
		}
	})
}

// FuzzDSNPassword varies the password, which may hold any character, and
// damages the end of the DSN: nothing of it may show.
func FuzzDSNPassword(f *testing.F) {
	for _, password := range []string{"hunter2", "p@ss/w:rd", "(%)", "tcp(x)/y?z", "ünïcode"} {
		for cut := range 4 {
			f.Add(password, uint8(cut))
		}
	}
	f.Fuzz(func(t *testing.T, password string, cut uint8) {
		marked := password + "hunter2" + password
		dsn := "user:" + marked + "@tcp(db:3306)/x_herald"
		dsn = dsn[:len(dsn)-int(cut)%len("@tcp(db:3306)/x_herald")]
		c, err := Load(env{"WAYBILL_HERALD_DSN": dsn}.get)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Fatalf("%q leaks: %s", dsn, err)
		}
		if err == nil && strings.Contains(c.Herald.DSN.String(), "hunter2") {
			t.Fatalf("%q shows: %s", dsn, c.Herald.DSN)
		}
	})
}
