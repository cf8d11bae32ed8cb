package devstack

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// The retry modes of a request. An editor asks for RetryForever; the test
// button and the command line for RetryNever.
const (
	RetryForever = "forever"
	RetryNever   = "never"
)

// entry is one entry of a PHP array: a key and an encoded value.
type entry struct{ key, value string }

// phpObject encodes entries as PHP's json_encode does: compact, in order.
func phpObject(entries []entry) string {
	if len(entries) == 0 {
		return "[]" // PHP knows one kind of empty array
	}
	parts := make([]string, len(entries))
	for i, e := range entries {
		parts[i] = phpString(e.key) + ":" + e.value
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func phpList(values []string) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = phpString(v)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// phpString encodes a string as json_encode does without flags: slashes
// escaped, everything beyond ASCII as \uXXXX in lower case.
func phpString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		writePHPRune(&b, r)
	}
	b.WriteByte('"')
	return b.String()
}

// phpEscapes are the short escapes json_encode uses.
const (
	phpEscaped = "\"\\/\b\f\n\r\t"
	phpLetters = `"\/bfnrt`
)

func writePHPRune(b *strings.Builder, r rune) {
	if i := strings.IndexRune(phpEscaped, r); i >= 0 {
		b.WriteByte('\\')
		b.WriteByte(phpLetters[i])
		return
	}
	if r >= ' ' && r <= 0x7f {
		b.WriteRune(r)
		return
	}
	for _, unit := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(b, `\u%04x`, unit)
	}
}

// byPHID is how an editor lists transactions: an object with each PHID as key
// and value, in the order they were applied.
func byPHID(phids []string) string {
	entries := make([]entry, len(phids))
	for i, p := range phids {
		entries[i] = entry{p, phpString(p)}
	}
	return phpObject(entries)
}

// byID is how the test button and the command line list them: row id as key,
// newest first.
func byID(transactions []transactionRow) string {
	entries := make([]entry, len(transactions))
	for i, t := range transactions {
		entries[i] = entry{strconv.FormatInt(t.id, 10), phpString(t.phid)}
	}
	return phpObject(entries)
}

func editorProperties(transactions, triggers []string, silent, secure bool) string {
	return phpObject([]entry{
		{"retry", phpString(RetryForever)},
		{"transactionPHIDs", byPHID(transactions)},
		{"triggerPHIDs", phpList(triggers)},
		{"silent", strconv.FormatBool(silent)},
		{"secure", strconv.FormatBool(secure)},
	})
}

func testProperties(viewer string, transactions []transactionRow) string {
	return phpObject([]entry{
		{"retry", phpString(RetryNever)},
		{"triggerPHIDs", phpList([]string{viewer})},
		{"test", "true"},
		{"transactionPHIDs", byID(transactions)},
	})
}

// commandLineTrigger is what `bin/webhook call` names as the trigger: not a
// row anywhere but the application.
const commandLineTrigger = "PHID-APPS-PhabricatorHeraldApplication"

func commandLineProperties(silent, secure bool, transactions []transactionRow) string {
	return phpObject([]entry{
		{"retry", phpString(RetryNever)},
		{"test", "true"},
		{"silent", strconv.FormatBool(silent)},
		{"secure", strconv.FormatBool(secure)},
		{"triggerPHIDs", phpList([]string{commandLineTrigger})},
		{"transactionPHIDs", byID(transactions)},
	})
}
