package herald

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParseURIAccepts(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := strings.Repeat("/x", 1500)
	for _, c := range []struct {
		uri, host, hostname string
		port                uint16
		target              string
	}{
		{"http://h/x", "h", "h", 80, "/x"},
		{"https://h/x", "h", "h", 443, "/x"},
		{"http://h", "h", "h", 80, "/"},
		{"http://h:8080", "h:8080", "h", 8080, "/"},
		// curl drops the scheme's own port from the Host header.
		{"http://h:80/x", "h", "h", 80, "/x"},
		{"http://h:00080/x", "h", "h", 80, "/x"},
		{"https://h:443/x", "h", "h", 443, "/x"},
		{"https://h:80/x", "h:80", "h", 80, "/x"},
		{"http://h:08080/x", "h:8080", "h", 8080, "/x"},
		{"http://h:65535/", "h:65535", "h", 65535, "/"},
		{"http://h:/x", "h", "h", 80, "/x"},
		{"https://h:", "h", "h", 443, "/"},
		{"http://Host.Example/", "Host.Example", "Host.Example", 80, "/"},
		{"http://a-b.1x.example./", "a-b.1x.example.", "a-b.1x.example.", 80, "/"},
		{"http://xn--bcher-kva.example/", "xn--bcher-kva.example", "xn--bcher-kva.example", 80, "/"},
		{"http://" + label + ".x/", label + ".x", label + ".x", 80, "/"},
		{"http://127.0.0.1/", "127.0.0.1", "127.0.0.1", 80, "/"},
		{"http://1.2.3.4.example/", "1.2.3.4.example", "1.2.3.4.example", 80, "/"},
		{"http://h" + long, "h", "h", 80, long},
		// Query and fragment.
		{"http://h?a=1", "h", "h", 80, "/?a=1"},
		{"http://h?", "h", "h", 80, "/?"},
		{"http://h/p?", "h", "h", 80, "/p?"},
		{"http://h/p??a?b", "h", "h", 80, "/p??a?b"},
		{"http://h/p?#f", "h", "h", 80, "/p?"},
		{"http://h#f", "h", "h", 80, "/"},
		{"http://h#f?q", "h", "h", 80, "/"},
		{"http://h/p#f?q:1", "h", "h", 80, "/p"},
		{"http://h/p?a=http://b:80", "h", "h", 80, "/p?a=http://b:80"},
		{"http://h/a:b@c", "h", "h", 80, "/a:b@c"},
		{`http://h/a\b`, "h", "h", 80, `/a\b`},
		{`http://h/"<>|^` + "`[]{}%zz%", "h", "h", 80, `/"<>|^` + "`[]{}%zz%"},
		{"http://h/é?é=ü", "h", "h", 80, "/%c3%a9?é=ü"},
		{"http://h/\xff?\xff", "h", "h", 80, "/%ff?\xff"},
		// Dot segments.
		{"http://h/a/./b/../c", "h", "h", 80, "/a/c"},
		{"http://h/..", "h", "h", 80, "/"},
		{"http://h/.", "h", "h", 80, "/"},
		{"http://h/../../x", "h", "h", 80, "/x"},
		{"http://h/a/..", "h", "h", 80, "/"},
		{"http://h/a/b/..", "h", "h", 80, "/a/"},
		{"http://h/a/b/.", "h", "h", 80, "/a/b/"},
		{"http://h/a//../b", "h", "h", 80, "/a/b"},
		{"http://h//../b", "h", "h", 80, "/b"},
		{"http://h//a//b/", "h", "h", 80, "//a//b/"},
		{"http://h/a/%2e%2e/b", "h", "h", 80, "/a/%2e%2e/b"},
		{"http://h/a/.../..b/.c", "h", "h", 80, "/a/.../..b/.c"},
		{"http://h/a?x=/../b", "h", "h", 80, "/a?x=/../b"},
		{"http://h/..?q", "h", "h", 80, "/?q"},
	} {
		t.Run(c.uri, func(t *testing.T) {
			got, err := ParseURI(c.uri)
			if err != nil {
				t.Fatal(err)
			}
			scheme, _, _ := strings.Cut(c.uri, ":")
			want := Target{Scheme: scheme, Host: c.host, Hostname: c.hostname, Port: c.port, RequestTarget: c.target}
			if got != want {
				t.Errorf("got %q %q %q %d %q", got.Scheme, got.Host, got.Hostname, got.Port, got.RequestTarget)
			}
		})
	}
}

func TestParseURIRefuses(t *testing.T) {
	for _, uri := range []string{
		"", " ", "h", "//h/x", "/x", "http", "http:", "http:/", "http://", "http:///x", "http://?x", "http://#x",
		"http:/h/x", "http:h", "http//h", "://h/x", "HTTP://h/x", "Http://h/x", "httpS://h/", "ftp://h/", "file:///etc/passwd",
		"mailto:a@b", "javascript:alert(1)", "gopher://h/", "httpx://h/", "h:80/x", "git@h:foo", "http:80/x", "xhttp://h/",
		// Space and control characters, anywhere.
		" http://h/", "\thttp://h/", "http://h/ ", "http://h/\n", "http://h/a b", "http://h/?a b", "http://h/\r\nX: y",
		"http://h\n/", "http://h/\x00", "http://h/\x1f", "http://h/\x7f", "http://u s@h/", "http://h/#a b",
		// Hosts.
		"http://[::1]/", "http://[::1]:80/", "http://[::ffff:127.0.0.1]/", "http://[h]/", "http://::1/",
		"http://my_host/", "http://-h/", "http://.h/", "http://h..x/", "http://h%2e/", "http://h%41/", "http://bücher.example/",
		"http://h\xff/", "http://h,x/", "http://h;x/", "http://*.x/", "http://h!/", "http://$h/", "http://h../",
		"http://" + strings.Repeat("a", 64) + ".x/", "http://" + strings.Repeat("a.", 127) + "a/",
		"http://localhost./", "http://LocalHost./",
		// IPv4 in every other dress.
		"http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://017700000001/",
		"http://127.1/", "http://127.0.1/", "http://127.0.0.01/", "http://127.0.0.1./", "http://256.0.0.1/", "http://1.2.3.4.5/",
		"http://0/", "http://0x/", "http://0X7F.1/", "http://1./", "http://4294967296/", "http://127.0.0.0x1/",
		// Ports.
		"http://h:0/", "http://h:00000/", "http://h:65536/", "http://h:99999/", "http://h:100000/", "http://h:000080/", "http://h:abc/",
		"http://h:80a/", "http://h:+80/", "http://h:-1/", "http://h:8:0/", "http://h::80/", "http://h:0x50/", "http://:80/", "http://:/",
		// User information.
		"http://a@b@c/", "http://a@b:80@c/", "http://u%00@h/", "http://u:p%00@h/", "http://u@/", "http://u:p@:80/", "http://@/",
		`http://127.0.0.1\@evil/`, `http://h\/x`, `http://h\`, `http://u\v@h/`,
		// Ambiguous in Phorge's sense.
		"http://127.0.0.1#@evil.com:80/", "http://a?x=http://b:80", "http://a#b:c", "http://a?b/c:d", "http://a#:", "http://a:80?x#y:z",
	} {
		t.Run(uri, func(t *testing.T) {
			got, err := ParseURI(uri)
			var fault *Fault
			if !errors.As(err, &fault) || fault.Subject != SubjectURI {
				t.Fatalf("got %v, want a fault", err)
			}
			if got != (Target{}) {
				t.Error("a refused URI left something behind")
			}
		})
	}
}

func TestUserinfo(t *testing.T) {
	for info, want := range map[string]string{
		"user":          "user:",
		"user:":         "user:",
		"us%65r:p%40ss": "user:p@ss",
		":pw":           ":pw",
		"u:p:q":         "u:p:q",
		"u%3av:p":       "u:v:p",
		"u%zz:%":        "u%zz:%",
		"%4":            "%4:",
		"u+v":           "u+v:",
		"é:ü":           "é:ü",
	} {
		got, err := ParseURI("http://" + info + "@h/")
		if err != nil {
			t.Errorf("%s: %v", info, err)
			continue
		}
		if pair := got.User.Name + ":" + got.User.Password; pair != want {
			t.Errorf("%s: got %s, want %s", info, pair, want)
		}
		if got.Hostname != "h" {
			t.Errorf("%s: host is %s", info, got.Hostname)
		}
	}
	for _, info := range []string{"@", ":@"} {
		if got, err := ParseURI("http://" + info + "h/"); err != nil || got.User != nil {
			t.Errorf("%s: got %v, %v", info, got.User, err)
		}
	}
	// RFC 7617, section 2.
	if got := (Userinfo{Name: "Aladdin", Password: "open sesame"}).BasicAuth(); got != "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==" {
		t.Errorf("got %s", got)
	}
}

// The decoded secret and every token in path or query stay inside.
func TestTargetPrintsNoSecret(t *testing.T) {
	target, err := ParseURI("https://s3cret:s3cret@h:8443/s3cret?s3cret=s3cret")
	if err != nil {
		t.Fatal(err)
	}
	marshalled, err := json.Marshal(map[string]any{"value": target, "pointer": &target, "user": target.User})
	if err != nil {
		t.Fatal(err)
	}
	printed := string(marshalled)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		printed += fmt.Sprintf(verb+verb+verb, target, &target, target.User)
		printed += fmt.Sprintf(verb, struct{ T Target }{target})
	}
	for _, secret := range []string{"s3cret", fmt.Sprintf("%x", "s3cret"), "115 51 99"} {
		if strings.Contains(printed, secret) {
			t.Errorf("%q shows in %s", secret, printed)
		}
	}
	if target.String() != "https://h:8443/..." {
		t.Errorf("got %s", target)
	}
}

// A fault goes to logs and to Temporal, so it must not quote the URI.
func TestFaultsQuoteNothing(t *testing.T) {
	for _, uri := range []string{"http://s3cret:s3cret@h:s3cret/s3cret", "s3cret://h", "http://s3cret_/", "http://h/s3cret s3cret"} {
		if _, err := ParseURI(uri); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", uri, err)
		}
	}
	if _, err := ParseProperties([]byte(`{"s3cret":s3cret}`)); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}
