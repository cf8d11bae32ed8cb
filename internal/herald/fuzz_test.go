package herald

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

func FuzzWithError(f *testing.F) {
	for _, c := range corpus(f) {
		f.Add([]byte(c.Before[0].Properties), 200, "")
	}
	for _, seed := range []string{
		`[]`, ` [ 1 , "a" ] `, `{"errorCode":1,"errorCode":2}`, `{ "errorType" : {} }`,
		`{"\u0065rrorType":"\ud83d\ude00"}`, `{"a":1e999}`, "{\"\x7f\":-0.0}",
	} {
		f.Add([]byte(seed), 28, "uri")
	}
	f.Fuzz(func(t *testing.T, raw []byte, number int, name string) {
		p, err := ParseProperties(raw)
		if err != nil {
			return
		}
		if !json.Valid(raw) {
			t.Fatal("accepted what is no JSON")
		}
		kind, code := ErrorHTTP, NumberCode(number)
		if name != "" {
			kind, code = ErrorHook, NameCode(strings.ToValidUTF8(name, "?"))
		}
		once := p.WithError(kind, code)
		again := mustParse(t, string(once))
		if twice := again.WithError(kind, code); !bytes.Equal(once, twice) {
			t.Fatalf("once %s, twice %s", once, twice)
		}
		if again.RetryForever() != p.RetryForever() {
			t.Fatal("the retry mode changed")
		}
		sameButError(t, raw, once)
	})
}

// sameButError compares by another reader's eyes: all keys but the two stand
// there with the bytes they had.
func sameButError(t *testing.T, before, after []byte) {
	t.Helper()
	was, is := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := json.Unmarshal(after, &is); err != nil {
		t.Fatal(err)
	}
	if json.Unmarshal(before, &was) != nil {
		return // a list; its positions have become keys
	}
	for key, v := range was {
		if key != keyErrorType && key != keyErrorCode && !bytes.Equal(v, is[key]) {
			t.Fatalf("%q was %s and is %s", key, v, is[key])
		}
	}
	if is[keyErrorType] == nil || is[keyErrorCode] == nil {
		t.Fatalf("no error in %s", after)
	}
}

func FuzzDocument(f *testing.F) {
	for _, c := range corpus(f) {
		f.Add([]byte(c.Before[0].Properties), c.Before[0].ObjectPHID, "PHID-XACT-TASK-a")
	}
	f.Add([]byte(`{"test":-0.0,"silent":1.5e-7,"secure":{"1":{}},"triggerPHIDs":{"a":[[[]]]}}`), "é", "\x7f")
	f.Fuzz(func(t *testing.T, raw []byte, object, transaction string) {
		p, err := ParseProperties(raw)
		if err != nil {
			return
		}
		object, transaction = strings.ToValidUTF8(object, "?"), strings.ToValidUTF8(transaction, "?")
		got := Document(Request{ObjectPHID: object}, p, []string{transaction})
		var read struct {
			Object       struct{ PHID string }
			Triggers     []struct{ PHID any }
			Transactions []struct{ PHID string }
		}
		if err := json.Unmarshal(got, &read); err != nil {
			// Numbers beyond a float are the one thing that PHP breaks on.
			if !bytes.ContainsAny(raw, "eE") && len(raw) < 300 {
				t.Fatalf("%v in %s", err, got)
			}
			return
		}
		if read.Object.PHID != object || len(read.Triggers) != len(p.triggers) || read.Transactions[0].PHID != transaction {
			t.Fatalf("reads back as %+v", read)
		}
		if bytes.ContainsFunc(got, func(r rune) bool { return r > 0x7f || r < ' ' && r != '\n' }) || got[len(got)-1] != '\n' {
			t.Fatalf("raw bytes in %q", got)
		}
	})
}

func FuzzParseURI(f *testing.F) {
	for _, c := range corpus(f) {
		f.Add(c.Hook.URI)
	}
	for _, seed := range []string{
		"http://u:p@h:81/a/../b?c#d", "http://h//../%2e/.", "https://h?", "http://h:/é?é", "http://@h", "http://h./",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		got, err := ParseURI(uri)
		if err != nil {
			return
		}
		line := got.RequestTarget + got.Host + got.Hostname
		if strings.ContainsFunc(line, isSpaceOrControl) || strings.Contains(got.RequestTarget, "#") {
			t.Fatalf("cannot stand on a request line: %q", line)
		}
		if !strings.HasPrefix(got.RequestTarget, "/") || got.Port == 0 || got.Hostname == "" {
			t.Fatalf("incomplete: %q %d %q", got.RequestTarget, got.Port, got.Hostname)
		}
		// The dialer and the policy look at our host; a library on the way must
		// not read another one.
		if u, err := url.Parse(uri); err == nil && u.Hostname() != got.Hostname {
			t.Fatalf("net/url reads the host %q, we %q", u.Hostname(), got.Hostname)
		}
		again, err := ParseURI(got.Scheme + "://" + got.Host + got.RequestTarget)
		got.User = nil
		if err != nil || again != got {
			t.Fatalf("%q reads back as %q (%v)", got.Host+got.RequestTarget, again.Host+again.RequestTarget, err)
		}
	})
}
