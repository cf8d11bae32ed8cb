package herald

import "strconv"

type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindInt
	kindFloat
	kindString
	kindArray
)

// value is what PHP's json_decode(assoc) makes of a JSON text. There is one
// array type, as in PHP: a JSON object keeps its keys, a JSON list has none
// (its keys are the positions).
type value struct {
	kind  kind
	truth bool
	whole int64
	real  float64
	text  string
	// keys is nil for a list. Integer-like keys become integers in PHP; that
	// renaming is one to one, so their canonical text serves as well here.
	keys  []string
	items []value
}

type member struct {
	key   string
	value value
}

func text(s string) value      { return value{kind: kindString, text: s} }
func truth(b bool) value       { return value{kind: kindBool, truth: b} }
func whole(n int64) value      { return value{kind: kindInt, whole: n} }
func list(items []value) value { return value{kind: kindArray, items: items} }

func keyed(members ...member) value {
	v := value{kind: kindArray, keys: make([]string, 0, len(members))}
	for _, m := range members {
		v.keys = append(v.keys, m.key)
		v.items = append(v.items, m.value)
	}
	return v
}

// get is a lookup by string key. A list has only integer keys.
func (v value) get(key string) (value, bool) {
	for i, k := range v.keys {
		if k == key {
			return v.items[i], true
		}
	}
	return value{}, false
}

// natural is Phorge's phutil_is_natural_list: keys 0, 1, 2 ... in order, which
// an object may have too, and an empty array always has.
func (v value) natural() bool {
	for i, k := range v.keys {
		if k != strconv.Itoa(i) {
			return false
		}
	}
	return true
}

// falsy is PHP's conversion to bool for what can stand for "no PHIDs".
func (v value) falsy() bool {
	switch v.kind {
	case kindNull:
		return true
	case kindBool:
		return !v.truth
	case kindInt:
		return v.whole == 0
	case kindFloat:
		return v.real == 0
	case kindString:
		return v.text == "" || v.text == "0"
	default:
		return len(v.items) == 0
	}
}
