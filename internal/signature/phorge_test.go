package signature_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"testing"

	"waybill/internal/signature"
)

func TestPhorgeVectors(t *testing.T) {
	raw, err := os.ReadFile("testdata/phorge_hmac.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			ID     string `json:"id"`
			Key    string `json:"key_ascii"`
			Body   string `json:"body_base64"`
			Digest string `json:"signature_hex"`
			Header string `json:"header_name"`
		} `json:"cases"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 3 {
		t.Fatalf("only %d vectors", len(file.Cases))
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			body, err := base64.StdEncoding.DecodeString(c.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got := signature.Phorge([]byte(c.Key), body); got != c.Digest {
				t.Errorf("got %s, want %s", got, c.Digest)
			}
			if c.Header != signature.PhorgeHeader {
				t.Errorf("header is %s", c.Header)
			}
		})
	}
}

// One changed bit of key or body must change the signature.
func TestPhorgeDependsOnEveryByte(t *testing.T) {
	key, body := []byte("kqv4w5hjzx2m7bnd3cyt6re4sgua7pfl"), []byte("{\n}\n")
	want := signature.Phorge(key, body)
	for _, part := range [][]byte{key, body} {
		for i := range part {
			part[i] ^= 1
			if signature.Phorge(key, body) == want {
				t.Errorf("byte %d does not matter", i)
			}
			part[i] ^= 1
		}
	}
	if signature.Phorge(key, body) != want {
		t.Error("arguments were kept or changed")
	}
}
