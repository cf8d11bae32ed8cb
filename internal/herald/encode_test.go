package herald

import (
	"strings"
	"testing"
)

// encoded is one JSON value through PHP's eyes and out again.
func encoded(t *testing.T, in string) string {
	t.Helper()
	d := &decoder{raw: []byte(in)}
	v, err := d.decode()
	if err != nil {
		t.Fatal(in, err)
	}
	return string(appendFormatted(nil, v, 0))
}

func TestScalars(t *testing.T) {
	for in, want := range map[string]string{
		"null": "null", "true": "true", "false": "false",
		"0": "0", "-1": "-1", "9223372036854775807": "9223372036854775807",
		"-9223372036854775808": "-9223372036854775808",
		// Beyond 64 bits an integer is a float to PHP.
		"9223372036854775808":  "9.223372036854776e+18",
		"-9223372036854775809": "-9.223372036854776e+18",
		"12345678901234567890": "1.2345678901234567e+19",
		// PHP's scanner reads "-0" with strtol, so the sign is lost.
		"-0": "0", "-0.0": "-0", "-0e5": "-0", "0.0": "0",
		"1.0": "1", "1.50": "1.5", "0.1": "0.1", "-2.5": "-2.5",
		"0.30000000000000004": "0.30000000000000004",
		// The point may stand up to 17 digits in, or three zeros behind it.
		"1e15": "1000000000000000", "1e16": "10000000000000000",
		"1e17": "1.0e+17", "1.5e17": "1.5e+17", "123456789012345678.0": "1.2345678901234568e+17",
		"12345678901234567.0": "12345678901234568",
		"0.001":               "0.001", "0.0001": "0.0001", "0.00012": "0.00012",
		"0.00001": "1.0e-5", "0.000012": "1.2e-5",
		"1e30": "1.0e+30", "1e100": "1.0e+100", "-1e-100": "-1.0e-100",
		"1.7976931348623157e308": "1.7976931348623157e+308", "5e-324": "5.0e-324",
		// Infinity makes json_encode fail, and false concatenates as nothing.
		"1e999": "", "-1e999": "",
		`"\/<>&'"`:                `"/<>&'"`,
		`"\u00e9\u2028\uffff"`:    `"\u00e9\u2028\uffff"`,
		`"é"`:                     `"\u00e9"`,
		`"\ud83d\ude00"`:          `"\ud83d\ude00"`,
		"\"\U0010ffff\"":          `"\udbff\udfff"`,
		`"\b\f\n\r\t\"\\"`:        `"\b\f\n\r\t\"\\"`,
		`"\u0000\u000b\u001f"`:    `"\u0000\u000b\u001f"`,
		"\"\x7f\"":                "\"\x7f\"",
		`"\u0041\u007E"`:          `"A~"`,
		`""`:                      `""`,
		`{}`:                      "[]",
		`[]`:                      "[]",
		`{"0":1,"1":2}`:           "[\n  1,\n  2\n]",
		`{"1":1,"0":2}`:           "{\n  \"1\": 1,\n  \"0\": 2\n}",
		`{"0":1,"2":2}`:           "{\n  \"0\": 1,\n  \"2\": 2\n}",
		`{"00":1}`:                "{\n  \"00\": 1\n}",
		`{"":{}}`:                 "{\n  \"\": []\n}",
		`[[],[1,{"a":{"b":[]}}]]`: "[\n  [],\n  [\n    1,\n    {\n      \"a\": {\n        \"b\": []\n      }\n    }\n  ]\n]",
	} {
		t.Run(in, func(t *testing.T) {
			if got := encoded(t, in); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// A string that is no UTF-8 can only come from a PHID column; json_encode fails
// on it as on infinity.
func TestBadUTF8PrintsNothing(t *testing.T) {
	if got := appendString([]byte("x"), "a\xff"); string(got) != "x" {
		t.Errorf("got %q", got)
	}
}

func TestDeepValuesAreIndented(t *testing.T) {
	got := encoded(t, strings.Repeat("[", 200)+"1"+strings.Repeat("]", 200))
	if !strings.Contains(got, "\n"+strings.Repeat("  ", 200)+"1\n") {
		t.Error("the innermost value is not 200 levels in")
	}
}
