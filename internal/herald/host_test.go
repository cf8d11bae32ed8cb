package herald

import (
	"fmt"
	"strings"
	"testing"
)

// Of all the ways in which inet_aton lets one write an address, only the dotted
// quad of plain decimal numbers is left.
func TestOneSpellingOfIPv4(t *testing.T) {
	formats := []string{"%d", "0%o", "0x%x", "0X%X", "00%d"}
	accepted := 0
	for _, parts := range [][]int{{0x7f000001}, {127, 1}, {127, 0, 1}, {127, 0, 0, 1}, {10, 20, 30, 40}, {0, 0, 0, 0}} {
		choices := 1
		for range parts {
			choices *= len(formats)
		}
		for n := range choices {
			var labels []string
			plain := len(parts) == 4
			for i, rest := 0, n; i < len(parts); i, rest = i+1, rest/len(formats) {
				format := rest % len(formats)
				plain = plain && format == 0
				labels = append(labels, fmt.Sprintf(formats[format], parts[i]))
			}
			host := strings.Join(labels, ".")
			if err := checkHost(host); plain != (err == nil) {
				t.Errorf("%s: %v", host, err)
			}
			if err := checkHost(host + "."); err == nil {
				t.Errorf("%s. was accepted", host)
			}
			if plain {
				accepted++
			}
		}
	}
	if accepted != 3 {
		t.Errorf("%d spellings accepted", accepted)
	}
}

// Names that begin or end like an address are names all the same.
func TestNamesWithNumbers(t *testing.T) {
	for _, host := range []string{"1a", "0xg", "127.0.0.1.example", "1-2", "a.1", "web.01", "3com.com", "0x7f.0.0.1.nip.example", "1.2.3.4a"} {
		if err := checkHost(host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}
