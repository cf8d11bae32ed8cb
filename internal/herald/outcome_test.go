package herald

import (
	"encoding/json"
	"testing"
)

// Every status with every retry mode: only 2xx is success.
func TestDecideIsTotalOverStatuses(t *testing.T) {
	for status := 1; status <= 1000; status++ {
		for _, forever := range []bool{false, true} {
			want := Verdict{StatusFailed, ResultFail, ErrorHTTP, NumberCode(status), true}
			if forever {
				want.Status = StatusQueued
			}
			if status/100 == 2 {
				want.Status, want.Result = StatusSent, ResultOkay
			}
			if got := Decide(Answer{HTTPStatus: status}, forever); got != want {
				t.Errorf("%d, forever %v: got %+v", status, forever, got)
			}
		}
	}
}

func TestDecideFaults(t *testing.T) {
	uri := HookFailure(HookURI)
	fail := func(kind ErrorType, code int) Verdict {
		return Verdict{StatusFailed, ResultFail, kind, NumberCode(code), true}
	}
	for name, c := range map[string]struct {
		answer Answer
		want   Verdict
	}{
		"nothing observed":      {Answer{}, fail(ErrorHTTP, CurlNotHTTP)},
		"negative status":       {Answer{HTTPStatus: -1}, fail(ErrorHTTP, -1)},
		"denied":                {Answer{Denied: true}, uri},
		"denied and more":       {Answer{Denied: true, Curl: CurlRefused, HTTPStatus: 200}, uri},
		"no such host":          {Answer{NoSuchHost: true, Curl: CurlUnresolved}, uri},
		"not resolved for now":  {Answer{Curl: CurlUnresolved}, fail(ErrorHTTP, 6)},
		"refused":               {Answer{Curl: CurlRefused}, fail(ErrorHTTP, 7)},
		"truncated 200":         {Answer{HTTPStatus: 200, Curl: CurlTruncated}, fail(ErrorHTTP, 18)},
		"truncated 500":         {Answer{HTTPStatus: 500, Curl: CurlTruncated}, fail(ErrorHTTP, 18)},
		"200 at the deadline":   {Answer{HTTPStatus: 200, Timeout: true}, fail(ErrorTimeout, 28)},
		"timeout":               {Answer{Timeout: true}, fail(ErrorTimeout, 28)},
		"timeout by number":     {Answer{Curl: CurlTimeout}, fail(ErrorTimeout, 28)},
		"timeout while closing": {Answer{Timeout: true, Curl: CurlReset}, fail(ErrorTimeout, 28)},
		"handshake":             {Answer{Curl: CurlTLS}, fail(ErrorHTTP, 35)},
		"closed":                {Answer{Curl: CurlClosed}, fail(ErrorHTTP, 52)},
		"reset":                 {Answer{Curl: CurlReset}, fail(ErrorHTTP, 56)},
		"certificate":           {Answer{Curl: CurlCertificate}, fail(ErrorHTTP, 60)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(c.answer, false); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			want := c.want
			if want.Result == ResultFail {
				want.Status = StatusQueued
			}
			if got := Decide(c.answer, true); got != want {
				t.Errorf("forever: got %+v, want %+v", got, want)
			}
		})
	}
}

// A configuration failure is final, leaves epoch 0 and does not feed the breaker.
func TestHookFailure(t *testing.T) {
	for _, code := range []string{HookDisabled, HookURI, HookObject} {
		want := Verdict{StatusFailed, ResultNone, ErrorHook, NameCode(code), false}
		if got := HookFailure(code); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestCodeSurvivesJSON(t *testing.T) {
	for want, code := range map[string]Code{`200`: NumberCode(200), `"uri"`: NameCode("uri"), `0`: {}, `-1`: NumberCode(-1)} {
		raw, err := json.Marshal(code)
		if err != nil || string(raw) != want {
			t.Errorf("got %s, %v, want %s", raw, err, want)
		}
		back := NameCode("stale")
		if err := json.Unmarshal(raw, &back); err != nil || back != code {
			t.Errorf("%s came back as %+v, %v", raw, back, err)
		}
	}
	for _, bad := range []string{`true`, `1.5`, `[]`, `{}`} {
		var c Code
		if err := json.Unmarshal([]byte(bad), &c); err == nil {
			t.Errorf("%s was taken for %s", bad, c)
		}
	}
	if NumberCode(404).String() != "404" || NameCode("uri").String() != "uri" {
		t.Error("a code does not print as a person reads it")
	}
}

// A verdict travels through Temporal when the first write fails.
func TestVerdictSurvivesJSON(t *testing.T) {
	for _, want := range []Verdict{Decide(Answer{HTTPStatus: 503}, true), HookFailure(HookObject)} {
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Verdict
		if err := json.Unmarshal(raw, &got); err != nil || got != want {
			t.Errorf("%s came back as %+v, %v", raw, got, err)
		}
	}
}
