package config

import (
	"encoding/base64"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBlankIsUnset: an empty variable, and one of white space, mean the
// default. Credentials are the exception and have their case among the faults.
func TestBlankIsUnset(t *testing.T) {
	for _, v := range variables {
		for _, blank := range []string{"", " ", "\t\n"} {
			if v.verbatim && blank != "" {
				continue
			}
			got := entry(t, mustLoad(t, env{v.name: blank}), v.name)
			if got.Source != "default" || got.Value != entry(t, mustLoad(t, nil), v.name).Value {
				t.Errorf("%s=%q: %+v", v.name, blank, got)
			}
		}
	}
}

// TestOneSlipIsRecognised makes typos of one key stroke in every name.
func TestOneSlipIsRecognised(t *testing.T) {
	for _, v := range variables {
		for i := len(prefix); i < len(v.name); i += 5 { // every fifth stroke keeps this fast
			for _, slip := range []string{
				v.name[:i] + v.name[i+1:],               // forgotten
				v.name[:i] + "Q" + v.name[i:],           // surplus
				v.name[:i] + "Q" + v.name[i+1:],         // beside
				v.name[:i] + v.name[i:i+1] + v.name[i:], // doubled
			} {
				// DEN is as near to DSN as to DENY; any name one stroke away will do.
				if got := nearest(slip); !known(slip) && got != v.name && edits(slip, got) > 1 {
					t.Errorf("%s: taken for %q, not %s", slip, got, v.name)
				}
			}
		}
	}
}

// TestDurationsInTheirSpan: what lies within the span is taken as it is, what
// lies outside is refused.
func TestDurationsInTheirSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		timeout := time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "timeout"))
		c, err := Load(env{"WAYBILL_HERALD_DELIVERY_TIMEOUT": timeout.String()}.get)
		inside := timeout >= time.Second && timeout <= 5*time.Minute
		if (err == nil) != inside {
			t.Fatalf("%s: %v", timeout, err)
		}
		if inside && c.Herald.DeliveryTimeout != timeout {
			t.Fatalf("%s became %s", timeout, c.Herald.DeliveryTimeout)
		}
	})
}

// TestNetworksReadBack: whatever list is accepted, its shown form is accepted
// again and means the same.
func TestNetworksReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []netip.Prefix
		for range rapid.IntRange(1, 5).Draw(t, "networks") {
			addr := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")))
			bits := rapid.IntRange(0, 32).Draw(t, "bits")
			want = append(want, netip.PrefixFrom(addr, bits).Masked())
		}
		separator := rapid.SampledFrom([]string{",", " ", ", ", "\n", " ,\t"}).Draw(t, "separator")
		given := make([]string, 0, len(want))
		for _, network := range want {
			given = append(given, network.String())
		}
		first, err := Load(env{"WAYBILL_HERALD_DENY": strings.Join(given, separator)}.get)
		if err != nil || !slices.Equal(first.Herald.Deny, want) {
			t.Fatalf("%q became %v, %v", given, first.Herald.Deny, err)
		}
		shown := join(first.Herald.Deny, netip.Prefix.String)
		second, err := Load(env{"WAYBILL_HERALD_DENY": shown}.get)
		if err != nil || !slices.Equal(second.Herald.Deny, want) {
			t.Fatalf("%q became %v, %v", shown, second.Herald.Deny, err)
		}
	})
}

func TestItems(t *testing.T) {
	for in, want := range map[string][]string{
		"": nil, ",": nil, " , ,": nil, "a": {"a"}, "a,b": {"a", "b"}, "a, b": {"a", "b"},
		"a b\tc\nd\r\ne": {"a", "b", "c", "d", "e"}, ",a,,b,": {"a", "b"}, "a;b": {"a;b"},
	} {
		if got := items(in); !slices.Equal(got, want) {
			t.Errorf("items(%q) = %q", in, got)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, test := range []struct {
		value          string
		dialled, bound bool // accepted as one that is dialled, or listened on
	}{
		{"127.0.0.1:80", true, true}, {"[::1]:80", true, true}, {"localhost:80", true, true},
		{"a.example.org:80", true, true}, {"a.example.org.:80", true, true}, {"my_service:80", true, true},
		{":80", false, true}, {"h:0", false, true}, {":0", false, true},
		{"::1:80", false, false}, {"[::1]", false, false}, {"h", false, false}, {"h:", false, false},
		{"h:80:80", false, false}, {"h:-1", false, false}, {"h:+80", false, false}, {"h:65536", false, false},
		{"h:http", false, false}, {"-h:80", false, false}, {"a..b:80", false, false}, {"h/x:80", false, false},
		{"http://h:80", false, false}, {"", false, false}, {"h h:80", false, false}, {"h\x00:80", false, false},
	} {
		if got := addressFault(test.value, true) == ""; got != test.dialled {
			t.Errorf("dialled %q: accepted %t", test.value, got)
		}
		if got := addressFault(test.value, false) == ""; got != test.bound {
			t.Errorf("bound %q: accepted %t", test.value, got)
		}
	}
}

func TestKeyLines(t *testing.T) {
	key := base64.StdEncoding.EncodeToString(make([]byte, kekLength))
	for name, test := range map[string]struct {
		content string
		ids     []string // nil: refused
	}{
		"one":               {"a " + key, []string{"a"}},
		"Windows' lines":    {"a " + key + "\r\nb " + key + "\r\n", []string{"a", "b"}},
		"tabs and indents":  {"\ta\t" + key + "  \n", []string{"a"}},
		"comments":          {"# a x\n\na " + key + "\n#\n", []string{"a"}},
		"order is kept":     {"z " + key + "\na " + key, []string{"z", "a"}},
		"key only":          {key, nil},
		"three words":       {"a " + key + " x", nil},
		"URL alphabet":      {"a " + strings.Repeat("_", 43) + "=", nil},
		"31 bytes":          {"a " + base64.StdEncoding.EncodeToString(make([]byte, 31)), nil},
		"33 bytes":          {"a " + base64.StdEncoding.EncodeToString(make([]byte, 33)), nil},
		"second line wrong": {"a " + key + "\nb", nil},
		"slash in the id":   {"a/b " + key, nil},
		"nothing":           {"", nil},
	} {
		keys, wrong := parseKeys([]byte(test.content))
		var ids []string
		for _, k := range keys {
			ids = append(ids, k.ID)
		}
		if !slices.Equal(ids, test.ids) || (wrong == "") != (test.ids != nil) {
			t.Errorf("%s: ids %q, wrong %q", name, ids, wrong)
		}
	}
}

// FuzzKeyLines: no content of a key file may show up in a message.
func FuzzKeyLines(f *testing.F) {
	f.Add("kek-2026", "hunter2")
	f.Add("", "a b c")
	f.Add("#", "\r")
	f.Fuzz(func(t *testing.T, id, key string) {
		_, wrong := parseKeys([]byte(id + "marker6561 " + key + "marker6561\n"))
		if strings.Contains(wrong, "marker6561") {
			t.Fatalf("leaks: %q", wrong)
		}
	})
}
