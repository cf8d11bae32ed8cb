// Package signature computes the signatures that deliveries carry. It keeps no
// keys and compares nothing; whoever verifies must compare in constant time.
// Any package may import it; it is pure.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// PhorgeHeader carries Phorge's signature of the body.
const PhorgeHeader = "X-Phabricator-Webhook-Signature"

// Phorge is Phorge's PhabricatorHash::digestHMACSHA256: HMAC-SHA256 over exactly
// the bytes sent, in lower-case hex. key is the hook's hmacKey column as it is;
// it looks like hex or base32 but is not decoded. Neither argument is kept. An
// empty key is for callers to refuse, as Phorge does: such a row is untouched.
func Phorge(key, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
