package herald_test

import (
	"testing"

	"waybill/internal/herald"
)

// silenced is a row as Phorge leaves it when the site is silent.
func silenced() herald.Request {
	return herald.Request{
		Status: herald.StatusFailed, LastResult: herald.ResultNone,
		Properties: []byte(`{"retry":"never","silent":false,"errorType":"hook","errorCode":"silent"}`),
	}
}

func TestOnlyPhorgesOwnWordsAreSilence(t *testing.T) {
	if !silenced().Silenced() {
		t.Error("Phorge's own row is not recognised")
	}
	for what, change := range map[string]func(*herald.Request){
		"still queued":         func(r *herald.Request) { r.Status = herald.StatusQueued },
		"sent":                 func(r *herald.Request) { r.Status = herald.StatusSent },
		"called and failed":    func(r *herald.Request) { r.LastResult = herald.ResultFail },
		"has an epoch":         func(r *herald.Request) { r.LastEpoch = 1 },
		"disabled":             func(r *herald.Request) { r.Properties = []byte(`{"errorType":"hook","errorCode":"disabled"}`) },
		"a silent transaction": func(r *herald.Request) { r.Properties = []byte(`{"silent":true}`) },
		"another type":         func(r *herald.Request) { r.Properties = []byte(`{"errorType":"http","errorCode":"silent"}`) },
		"the word somewhere":   func(r *herald.Request) { r.Properties = []byte(`{"errorType":"hook","errorCode":{"a":"silent"}}`) },
		"the last of two counts": func(r *herald.Request) {
			r.Properties = []byte(`{"errorType":"hook","errorCode":"silent","errorCode":"uri"}`)
		},
		"no JSON": func(r *herald.Request) { r.Properties = []byte(`"errorCode":"silent"`) },
		"a list":  func(r *herald.Request) { r.Properties = []byte(`["errorCode","silent"]`) },
		"empty":   func(r *herald.Request) { r.Properties = nil },
	} {
		r := silenced()
		change(&r)
		if r.Silenced() {
			t.Errorf("%s: taken for silence", what)
		}
	}
}

// A row reads as the verdict that was written into it, whatever else it holds:
// otherwise every delivery would look overwritten.
func TestARowReadsAsItsVerdict(t *testing.T) {
	for name, v := range map[string]herald.Verdict{
		"delivered": herald.Decide(herald.Answer{HTTPStatus: 200}, true),
		"failed":    herald.Decide(herald.Answer{HTTPStatus: 500}, false),
		"retried":   herald.Decide(herald.Answer{Curl: 7}, true),
		"timeout":   herald.Decide(herald.Answer{Timeout: true, Curl: herald.CurlTimeout}, true),
		"no name":   herald.Decide(herald.Answer{NoSuchHost: true}, true),
		"disabled":  herald.HookFailure(herald.HookDisabled),
	} {
		for _, raw := range []string{`[]`, `{}`, `{"retry":"forever","errorType":"old","errorCode":1.5}`, `[1]`, ` {"x":[{}]} `} {
			p, err := herald.ParseProperties([]byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			r := herald.Request{Status: v.Status, LastResult: v.Result, Properties: p.WithError(v.ErrorType, v.Code)}
			if got, want := r.Ending(), v.Ending(); got != want {
				t.Errorf("%s over %s reads %q, want %q", name, raw, got, want)
			}
		}
	}
}
