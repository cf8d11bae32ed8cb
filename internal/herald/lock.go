package herald

import "crypto/sha1" //nolint:gosec // names a lock as Phorge does; no security rests on it

// Phorge's PhabricatorHash::digestToLength(.., 20): 7 bytes of the text, a dash,
// 12 characters of digest.
const (
	lockPrefix = 7
	lockDigest = 12
)

// digestAlphabet maps six bits to a character, as digestForIndex does.
const digestAlphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._"

// LockName is the MySQL user lock that Phorge's worker holds while it calls the
// hook. namespace is Phorge's storage namespace, "phabricator" by default.
func LockName(namespace, hookPHID string) string {
	return "ph:" + digestToLength(namespace) + ":" + digestToLength("webhook("+hookPHID+")()")
}

func digestToLength(s string) string {
	sum := sha1.Sum([]byte(s)) //nolint:gosec // see the import
	out := []byte(s[:min(len(s), lockPrefix)])
	out = append(out, '-')
	for _, b := range sum[:lockDigest] {
		out = append(out, digestAlphabet[b&0x3f])
	}
	return string(out)
}
