package herald

import (
	"slices"
	"testing"
)

func mustParse(t testing.TB, in string) Properties {
	t.Helper()
	p, err := ParseProperties([]byte(in))
	if err != nil {
		t.Fatal(in, err)
	}
	return p
}

func TestRetryForever(t *testing.T) {
	for in, want := range map[string]bool{
		`{"retry":"forever"}`: true, `{"retry":"\u0066orever"}`: true,
		`{"retry":"never"}`: false, `{"retry":"Forever"}`: false, `{"retry":"forever "}`: false,
		`{"retry":true}`: false, `{"retry":null}`: false, `{"retry":["forever"]}`: false,
		`{}`: false, `[]`: false, `["forever"]`: false, `{"Retry":"forever"}`: false,
		`{"retry":"forever","retry":"never"}`: false, `{"retry":"never","retry":"forever"}`: true,
	} {
		if got := mustParse(t, in).RetryForever(); got != want {
			t.Errorf("%s: got %v", in, got)
		}
	}
}

func TestTransactionPHIDs(t *testing.T) {
	for in, want := range map[string][]string{
		`{}`: nil, `[]`: nil, `["a"]`: nil,
		`{"transactionPHIDs":[]}`: nil, `{"transactionPHIDs":{}}`: nil,
		`{"transactionPHIDs":false}`: nil, `{"transactionPHIDs":0}`: nil,
		`{"transactionPHIDs":0.0}`: nil, `{"transactionPHIDs":-0.0}`: nil,
		`{"transactionPHIDs":["b","a","b"]}`:             {"b", "a"},
		`{"transactionPHIDs":{"x":"b","y":"a"}}`:         {"b", "a"},
		`{"transactionPHIDs":{"9":"b","8":"a"}}`:         {"b", "a"},
		`{"transactionPHIDs":{"x":"a","x":"b"}}`:         {"b"},
		`{"transactionPHIDs":[5,null,true,1.5,"a"]}`:     {"a"},
		`{"transactionPHIDs":["","a"]}`:                  {"", "a"},
		`{"transactionPHIDs":"a","transactionPHIDs":[]}`: nil,
	} {
		got := mustParse(t, in).TransactionPHIDs()
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

// The caller may sort the result in place.
func TestTransactionPHIDsIsACopy(t *testing.T) {
	p := mustParse(t, `{"transactionPHIDs":["b","a"]}`)
	slices.Sort(p.TransactionPHIDs())
	if got := p.TransactionPHIDs(); got[0] != "b" {
		t.Errorf("got %q", got)
	}
}

func TestListsThatPHPCannotProcess(t *testing.T) {
	for _, v := range []string{`null`, `""`, `"0"`, `"PHID-X"`, `true`, `1`, `-1`, `0.5`, `1e999`, `[[]]`, `["a",{}]`} {
		if _, err := ParseProperties([]byte(`{"transactionPHIDs":` + v + `}`)); err == nil {
			t.Errorf("transactionPHIDs %s was accepted", v)
		}
	}
	for _, v := range []string{`null`, `""`, `"PHID-X"`, `true`, `false`, `0`, `1`, `0.5`} {
		if _, err := ParseProperties([]byte(`{"triggerPHIDs":` + v + `}`)); err == nil {
			t.Errorf("triggerPHIDs %s was accepted", v)
		}
	}
}

func TestWithError(t *testing.T) {
	number, name := NumberCode(200), NameCode(HookURI)
	for _, c := range []struct {
		name, in string
		kind     ErrorType
		code     Code
		want     string
	}{
		{"appends both", `{"a":1}`, ErrorHTTP, number, `{"a":1,"errorType":"http","errorCode":200}`},
		{"appends to nothing", `{}`, ErrorHTTP, number, `{"errorType":"http","errorCode":200}`},
		{"string code", `{}`, ErrorHook, name, `{"errorType":"hook","errorCode":"uri"}`},
		{"timeout", `{}`, ErrorTimeout, NumberCode(28), `{"errorType":"timeout","errorCode":28}`},
		{
			"overwrites in place", `{"errorCode":"28","errorType":"timeout","z":{}}`, ErrorHTTP, number,
			`{"errorCode":200,"errorType":"http","z":{}}`,
		},
		{"only the type is there", `{"errorType":null,"b":[]}`, ErrorHTTP, number, `{"errorType":"http","b":[],"errorCode":200}`},
		{"only the code is there", `{"errorCode":[1,{}],"b":1}`, ErrorHTTP, number, `{"errorCode":200,"b":1,"errorType":"http"}`},
		{
			"every duplicate", `{"errorCode":1,"errorType":"x","errorCode":2,"\u0065rrorType":3}`, ErrorHTTP, number,
			`{"errorCode":200,"errorType":"http","errorCode":200,"\u0065rrorType":"http"}`,
		},
		{"not an inner key", `{"a":{"errorCode":1}}`, ErrorHTTP, number, `{"a":{"errorCode":1},"errorType":"http","errorCode":200}`},
		{
			"keeps every other byte", " {\n \"a\" : 1.0 ,\t\"u\":\"\\u00e9é\\/\",\"b\":12345678901234567890 , \"c\":{ } \n}\n", ErrorHTTP, number,
			" {\n \"a\" : 1.0 ,\t\"u\":\"\\u00e9é\\/\",\"b\":12345678901234567890 , \"c\":{ },\"errorType\":\"http\",\"errorCode\":200 \n}\n",
		},
		{"keeps space in place", `{ "errorCode" : 5 , "a":1}`, ErrorHTTP, number, `{ "errorCode" : 200 , "a":1,"errorType":"http"}`},
		{"empty with space", ` { } `, ErrorHTTP, number, ` {"errorType":"http","errorCode":200 } `},
		{"empty list", `[]`, ErrorHTTP, number, `{"errorType":"http","errorCode":200}`},
		{"empty list with space", ` [ ] `, ErrorHTTP, number, ` {"errorType":"http","errorCode":200 } `},
		{"list", `[1, [2] ,"\u00e9"]`, ErrorHTTP, number, `{"0":1, "1":[2] ,"2":"\u00e9","errorType":"http","errorCode":200}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := string(mustParse(t, c.in).WithError(c.kind, c.code))
			if got != c.want {
				t.Fatalf("\n got %s\nwant %s", got, c.want)
			}
			again := string(mustParse(t, got).WithError(c.kind, c.code))
			if again != got {
				t.Errorf("a second time gives %s", again)
			}
		})
	}
}

func TestZeroProperties(t *testing.T) {
	var p Properties
	if p.RetryForever() || p.TransactionPHIDs() != nil {
		t.Error("the zero Properties hold something")
	}
	want := `{"errorType":"hook","errorCode":"disabled"}`
	if got := string(p.WithError(ErrorHook, NameCode(HookDisabled))); got != want {
		t.Errorf("got %s", got)
	}
}
