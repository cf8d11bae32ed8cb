package devstack

import "crypto/rand"

// phidAlphabet has 32 characters, like the ones in the PHIDs of a real Phorge;
// a power of two keeps the choice even.
const phidAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

// Lengths of a PHID's random part. Transactions carry a second type and get
// the five characters less that it takes ("TASK-").
const (
	phidRandom     = 20
	phidXactRandom = 15
)

// NewPHID makes an identifier as Phorge does: PHID-<kind>-<20 random
// characters>. Kinds: TASK, USER, HWBH (hook), HWBR (request), HRUL (rule) ...
func NewPHID(kind string) string { return "PHID-" + kind + "-" + RandomName(phidRandom) }

// NewTransactionPHID makes a transaction's identifier, PHID-XACT-<kind>-<15>.
func NewTransactionPHID(kind string) string {
	return "PHID-XACT-" + kind + "-" + RandomName(phidXactRandom)
}

// RandomName returns n random characters of a-z and 2-7. They come from the
// system's source, which does not fail (crypto/rand).
func RandomName(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	for i := range b {
		b[i] = phidAlphabet[int(b[i])%len(phidAlphabet)]
	}
	return string(b)
}
