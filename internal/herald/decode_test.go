package herald

import (
	"errors"
	"strings"
	"testing"
)

func TestParsePropertiesRefuses(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, in := range map[string]string{
		"nothing":            "",
		"only space":         " \n",
		"number":             "5",
		"string":             `"{}"`,
		"null":               "null",
		"true":               "true",
		"two values":         "{}{}",
		"trailing comma":     `{"a":1,}`,
		"list comma":         "[1,]",
		"leading comma":      "[,1]",
		"no colon":           `{"a" 1}`,
		"bare key":           "{a:1}",
		"number key":         "{1:2}",
		"single quotes":      "{'a':1}",
		"unclosed":           `{"a":1`,
		"unclosed list":      "[1",
		"mismatch":           "[1}",
		"unclosed string":    `["a`,
		"escape at end":      `["\`,
		"upper literal":      "[True]",
		"word":               "[nul]",
		"leading zero":       "[01]",
		"minus zero one":     "[-01]",
		"plus":               "[+1]",
		"bare minus":         "[-]",
		"no fraction":        "[1.]",
		"no integer":         "[.5]",
		"no exponent":        "[1e]",
		"signed exponent":    "[1e+]",
		"hex":                "[0x1]",
		"NaN":                "[NaN]",
		"bad escape":         `["\q"]`,
		"short unicode":      `["\u12"]`,
		"non-hex unicode":    `["\u12g4"]`,
		"lone high":          `["\ud83d"]`,
		"lone low":           `["\ude00"]`,
		"high and no low":    `["\ud83d\u0041"]`,
		"high and short low": `["\ud83d\ude0"]`,
		"two highs":          `["\ud83d\ud83d"]`,
		"surrogate in UTF-8": "[\"\xed\xa0\x80\"]",
		"overlong":           "[\"\xc0\x80\"]",
		"cut UTF-8":          "[\"\xc3\"]",
		"beyond Unicode":     "[\"\xf4\x90\x80\x80\"]",
		"raw newline":        "[\"\n\"]",
		"raw NUL":            "[\"\x00\"]",
		"NUL behind":         "{}\x00",
		"form feed":          "\f{}",
		"byte order mark":    "\xef\xbb\xbf{}",
		"no-break space":     "{}\u00a0",
		"comment":            "{}//",
		"too deep":           deep(maxDepth + 1),
		"much too deep":      strings.Repeat(`{"a":`, 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseProperties([]byte(in))
			var fault *Fault
			if !errors.As(err, &fault) || fault.Subject != SubjectProperties {
				t.Errorf("got %v, want a fault", err)
			}
		})
	}
}

func TestParsePropertiesAccepts(t *testing.T) {
	for name, in := range map[string]string{
		"empty object":    "{}",
		"empty list":      "[]",
		"spaces":          " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } }\r\n ",
		"list":            `[1,"two",null,[],{}]`,
		"empty key":       `{"":1}`,
		"NUL in a key":    `{"\u0000a":1}`,
		"pair":            `["\ud83d\ude00"]`,
		"highest":         "[\"\xf4\x8f\xbf\xbf\"]",
		"del":             "[\"\x7f\"]",
		"as deep as PHP":  strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth),
		"many in a row":   "[" + strings.Repeat("[[]],", 2000) + "[]]",
		"beyond a float":  "[1e999,-1e999]",
		"long integer":    "[" + strings.Repeat("9", 400) + "]",
		"capital E":       "[1E2,1e-2,1.5E+3]",
		"all the escapes": `["\"\\\/\b\f\n\r\t\u0041"]`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseProperties([]byte(in)); err != nil {
				t.Error(err)
			}
		})
	}
}

// PHP's array assignment: the last value of a key stands where the key first
// stood, also when the key is spelled with escapes.
func TestDuplicateKeys(t *testing.T) {
	d := &decoder{raw: []byte(`{"a":1,"b":2,"\u0061":3,"5":4,"5":5,"05":6,"-0":7}`)}
	v, err := d.decode()
	if err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"a\": 3,\n  \"b\": 2,\n  \"5\": 5,\n  \"05\": 6,\n  \"-0\": 7\n}"
	if got := string(appendFormatted(nil, v, 0)); got != want {
		t.Errorf("got %s", got)
	}
	if len(d.outer) != 7 {
		t.Errorf("%d entries remembered, want every occurrence", len(d.outer))
	}
}

// The row's bytes belong to the caller and may change afterwards.
func TestParsePropertiesKeepsACopy(t *testing.T) {
	raw := []byte(`{"retry":"forever"}`)
	p, err := ParseProperties(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		raw[i] = 'x'
	}
	want := `{"retry":"forever","errorType":"http","errorCode":200}`
	if got := string(p.WithError(ErrorHTTP, NumberCode(200))); got != want {
		t.Errorf("got %s", got)
	}
}
