package herald

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// Every byte at every kind of place in a URI: what is refused, and what stands
// on the request line.
func TestEveryByteOfAURI(t *testing.T) {
	for b := range 256 {
		c := string([]byte{byte(b)})
		bad := b <= ' ' || b == 0x7f
		letter := isDigit(byte(b)) || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
		escaped := c
		if b >= 0x80 {
			escaped = fmt.Sprintf("%%%02x", b)
		}
		path, query := "/a"+escaped+"b", "/?a"+c+"b"
		switch c {
		case "#":
			path, query = "/a", "/?a"
		case "/":
			path = "/a/b"
		}
		for uri, target := range map[string]string{"http://h/a" + c + "b": path, "http://h/?a" + c + "b": query} {
			got, err := ParseURI(uri)
			if bad != (err != nil) || !bad && got.RequestTarget != target {
				t.Errorf("%q: got %q, %v, want %q", uri, got.RequestTarget, err, target)
			}
		}
		for place, allowed := range map[string]bool{
			"http://a" + c + "b/":   letter || strings.Contains(".-@/#?", c),
			"http://" + c + "b/":    letter || c == "@",
			"http://a" + c + "b@h/": !bad && !strings.Contains(`\@`, c),
		} {
			if _, err := ParseURI(place); allowed != (err == nil) {
				t.Errorf("%q: got %v, want accepted %v", place, err, allowed)
			}
		}
	}
}

func TestEveryPort(t *testing.T) {
	for n := range 70_000 {
		digits := strconv.Itoa(n)
		got, err := ParseURI("https://h:" + digits + "/")
		if usable := n > 0 && n <= 65535; usable != (err == nil) {
			t.Fatalf("port %d: %v", n, err)
		}
		if err != nil {
			continue
		}
		host := "h:" + digits
		if n == 443 {
			host = "h"
		}
		if int(got.Port) != n || got.Host != host {
			t.Fatalf("port %d: got %d, %s", n, got.Port, got.Host)
		}
	}
}

// Every byte alone in a string: control characters must be escaped, bytes from
// 0x80 are no UTF-8 alone, the rest reads as itself.
func TestEveryByteOfAString(t *testing.T) {
	for b := range 256 {
		raw := []byte{'[', '"', byte(b), '"', ']'}
		_, err := ParseProperties(raw)
		if ok := b >= 0x20 && b < 0x80 && b != '"' && b != '\\'; ok != (err == nil) {
			t.Errorf("%q: %v", raw, err)
		}
		raw = []byte{'[', '"', '\\', byte(b), '"', ']'}
		_, err = ParseProperties(raw)
		if ok := strings.ContainsRune(`"\/bfnrt`, rune(b)) && b < 0x80; ok != (err == nil) {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// Every code point, raw and escaped, is encoded in ASCII and reads as itself.
func TestEveryRune(t *testing.T) {
	for r := rune(0); r <= 0x10ffff; r++ {
		if r >= 0xd800 && r <= 0xdfff {
			continue
		}
		out := appendString(nil, string(r))
		if bytes.ContainsFunc(out, func(c rune) bool { return c < ' ' || c > 0x7f }) {
			t.Fatalf("%U is encoded as %q", r, out)
		}
		d := &decoder{raw: out}
		if v, err := d.decode(); err != nil || v.text != string(r) {
			t.Fatalf("%U reads back as %q, %v", r, v.text, err)
		}
		if r < 0x3000 || r%257 == 0 {
			var s string
			if err := json.Unmarshal(out, &s); err != nil || s != string(r) {
				t.Fatalf("%U is %q to encoding/json (%v)", r, s, err)
			}
		}
	}
}

// Every UTF-16 unit as an escape: surrogates count in pairs only.
func TestEveryUnit(t *testing.T) {
	for u := range 0x10000 {
		alone := fmt.Sprintf(`["\u%04X"]`, u)
		_, err := ParseProperties([]byte(alone))
		if surrogate := u >= 0xd800 && u <= 0xdfff; surrogate != (err != nil) {
			t.Fatalf("%s: %v", alone, err)
		}
		paired := fmt.Sprintf(`["\ud800\u%04x"]`, u)
		_, err = ParseProperties([]byte(paired))
		if low := u >= 0xdc00 && u <= 0xdfff; low != (err == nil) {
			t.Fatalf("%s: %v", paired, err)
		}
	}
}

// Floats of every magnitude read back as themselves and have PHP's shape.
func TestFloatsReadBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		checkFloat(t, math.Float64frombits(random.Uint64()))
	}
	for exp := -320; exp <= 308; exp++ {
		for _, mantissa := range []string{"1", "1.5", "9.999999999999999", "1.2345678901234567"} {
			f, _ := strconv.ParseFloat(mantissa+"e"+strconv.Itoa(exp), 64)
			checkFloat(t, f)
			checkFloat(t, -f)
		}
	}
}

func checkFloat(t *testing.T, f float64) {
	t.Helper()
	out := string(appendFloat(nil, f))
	if math.IsNaN(f) || math.IsInf(f, 0) {
		if out != "" {
			t.Fatalf("%v is printed as %s", f, out)
		}
		return
	}
	back, err := strconv.ParseFloat(out, 64)
	if err != nil || back != f {
		t.Fatalf("%v is printed as %s", f, out)
	}
	mantissa, exponent, exponential := strings.Cut(out, "e")
	size := math.Abs(f)
	if wide := size != 0 && (size < 0.0001 || size >= 1e17); wide != exponential {
		t.Fatalf("%v is printed as %s", f, out)
	}
	if exponential && (!strings.Contains(mantissa, ".") || !strings.ContainsAny(exponent[:1], "+-") || exponent[1] == '0') {
		t.Fatalf("%v is printed as %s", f, out)
	}
	if !exponential && strings.HasSuffix(out, ".0") {
		t.Fatalf("%v is printed as %s", f, out)
	}
}

// WithError over every arrangement of up to four entries, compared by another
// JSON reader.
func TestWithErrorEveryArrangement(t *testing.T) {
	entries := []string{`"errorType":"old"`, `"errorCode" : {"errorType":1}`, `"a":[1, 2]`, `"\u0065rrorCode":null`}
	for n := range 5 * 5 * 5 * 5 {
		var chosen []string
		for rest := n; rest > 0; rest /= 5 {
			if i := rest % 5; i > 0 {
				chosen = append(chosen, entries[i-1])
			}
		}
		in := "{ " + strings.Join(chosen, " , ") + " }"
		out := mustParse(t, in).WithError(ErrorHook, NameCode(HookURI))
		var got map[string]any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s gives %s: %v", in, out, err)
		}
		want := map[string]any{"errorType": "hook", "errorCode": "uri"}
		if strings.Contains(in, `"a"`) {
			want["a"] = []any{1.0, 2.0}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s gives %s", in, out)
		}
		if strings.Contains(string(out), "old") || strings.Contains(string(out), "null") {
			t.Fatalf("%s keeps an old error: %s", in, out)
		}
	}
}

// Random documents: encoding/json must read the same from what came in and from
// what goes out, but for empty objects, which PHP makes lists.
func TestRandomValuesPassThrough(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		in, err := json.Marshal(randomValue(random, 5))
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if err := json.Unmarshal(in, &want); err != nil {
			t.Fatal(err)
		}
		out := encoded(t, string(in))
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%s becomes %s: %v", in, out, err)
		}
		if !reflect.DeepEqual(got, asPHP(want)) {
			t.Fatalf("%s becomes %s", in, out)
		}
		if again := encoded(t, out); again != out {
			t.Fatalf("%s becomes %s", out, again)
		}
	}
}

func randomValue(random *rand.Rand, depth int) any {
	keys := []string{"a", "é", "0", "1", "", "\U0001f600\"\\/"}
	switch n := random.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return random.IntN(2) == 0
	case n == 2:
		return random.NormFloat64() * 1e10
	case n == 3:
		return random.Int64() >> random.IntN(63)
	case n == 4 || depth == 0:
		return keys[random.IntN(len(keys))]
	case n == 5:
		object := map[string]any{}
		for range random.IntN(4) {
			object[keys[random.IntN(len(keys))]] = randomValue(random, depth-1)
		}
		return object
	default:
		items := make([]any, random.IntN(4))
		for i := range items {
			items[i] = randomValue(random, depth-1)
		}
		return items
	}
}

// asPHP turns every object that PHP would take for a list into one. Go writes
// map keys sorted, so "0" stands before "1" where both are present.
func asPHP(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = asPHP(v[i])
		}
	case map[string]any:
		items := []any{}
		for i := range len(v) {
			if item, ok := v[strconv.Itoa(i)]; ok {
				items = append(items, asPHP(item))
			}
		}
		if len(items) == len(v) {
			return items
		}
		for key := range v {
			v[key] = asPHP(v[key])
		}
	}
	return v
}
