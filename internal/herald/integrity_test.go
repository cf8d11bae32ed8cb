package herald

import (
	"slices"
	"strings"
	"testing"
)

// No beginning of a stored properties text is itself acceptable: a column that
// was cut off (MySQL without strict mode does that) never passes for a row.
func TestCutPropertiesAreRefused(t *testing.T) {
	texts := map[string]bool{}
	for _, c := range corpus(t) {
		for _, r := range slices.Concat(c.Before, c.After) {
			if len(r.Properties) < 600 {
				texts[r.Properties] = true
			}
		}
	}
	for whole := range texts {
		for end := range len(whole) {
			if _, err := ParseProperties([]byte(whole[:end])); err == nil {
				t.Fatalf("%s was accepted", whole[:end])
			}
		}
	}
}

// What Waybill writes can be read by the next attempt, and an outcome replaces
// the one before it: any order of outcomes ends like the last alone.
func TestOutcomesReplaceEachOther(t *testing.T) {
	verdicts := []Verdict{
		Decide(Answer{HTTPStatus: 500}, true), Decide(Answer{Timeout: true}, true),
		HookFailure(HookDisabled), Decide(Answer{HTTPStatus: 204}, true),
	}
	for _, c := range corpus(t) {
		first, err := ParseProperties([]byte(c.Before[0].Properties))
		if err != nil {
			continue
		}
		for _, a := range verdicts {
			for _, b := range verdicts {
				between := mustParse(t, string(first.WithError(a.ErrorType, a.Code)))
				got := string(between.WithError(b.ErrorType, b.Code))
				if want := string(first.WithError(b.ErrorType, b.Code)); got != want {
					t.Fatalf("%s: %v then %v gives %s, want %s", c.Name, a, b, got, want)
				}
			}
		}
	}
}

// The document depends on the row's creation, not on its history: a retry sends
// the same bytes, even after its outcome was written into the properties.
func TestRetriesSendTheSameBytes(t *testing.T) {
	for _, c := range corpus(t) {
		r := c.Before[0].request()
		p, err := ParseProperties(r.Properties)
		if err != nil {
			continue
		}
		sent := p.TransactionPHIDs()
		first := string(Document(r, p, sent))
		if strings.Count(first, `"phid"`) != 1+len(sent)+len(p.triggers) {
			t.Errorf("%s: %s", c.Name, first)
		}
		r.Modified, r.LastEpoch, r.LastResult = r.Modified+60, r.Modified+60, ResultFail
		retry := mustParse(t, string(p.WithError(ErrorHTTP, NumberCode(500))))
		if again := string(Document(r, retry, sent)); again != first {
			t.Errorf("%s: a retry sends %s", c.Name, again)
		}
	}
}

func TestRequestClaimed(t *testing.T) {
	for name, c := range map[string]struct {
		r    Request
		want bool
	}{
		"fresh":                    {Request{LastResult: ResultNone, Created: 100, Modified: 100}, false},
		"claimed":                  {Request{LastResult: ResultNone, Created: 100, Modified: 101}, true},
		"failed at once":           {Request{LastResult: ResultFail, Created: 100, Modified: 102, LastEpoch: 100}, false},
		"failed later":             {Request{LastResult: ResultFail, Created: 100, Modified: 150, LastEpoch: 150}, false},
		"failed and claimed again": {Request{LastResult: ResultFail, Created: 100, Modified: 210, LastEpoch: 150}, true},
	} {
		if got := c.r.Claimed(); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
