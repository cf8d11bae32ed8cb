package config

import "encoding/json"

// mask stands for every secret, whatever its length: even the length of a
// token is nobody's business.
const mask = "********"

// Secret is a text that shows itself to nobody but a caller of Reveal. The
// text hangs behind a pointer, so that fmt prints an address where it reaches
// the value through an unexported field and may not call String.
type Secret struct{ text *string }

// NewSecret hides text; an empty text gives the unset Secret.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Set says whether there is a text at all.
func (s Secret) Set() bool { return s.text != nil }

// Reveal returns the text, empty when unset. Its callers are the places where
// a secret leaves for its purpose, easy to list by this name.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// String returns the mask, or nothing when unset.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return mask
}

// GoString keeps %#v from looking inside.
func (s Secret) GoString() string { return "config.Secret(" + s.String() + ")" }

// MarshalJSON writes the mask.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }
