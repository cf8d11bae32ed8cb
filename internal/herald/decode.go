package herald

import (
	"bytes"
	"strconv"
)

// maxDepth is how many arrays and objects may enclose each other. PHP's default
// depth is 512 and its parser starts counting at 1 (ext/json/json_parser.y).
const maxDepth = 511

const (
	reasonSyntax = "not JSON as PHP decodes it"
	reasonDepth  = "nested deeper than PHP decodes"
	reasonUTF8   = "not valid UTF-8, or half of a surrogate pair"
)

// span is one entry of the outermost array: its decoded key and where its value
// stands in the text. Duplicate keys give several spans.
type span struct {
	key        string
	start, end int
}

// decoder is a strict JSON reader with PHP's limits. It exists because
// encoding/json replaces bad UTF-8 and lone surrogates, forgets the order of
// keys and does not say where a value stands.
type decoder struct {
	raw   []byte
	pos   int
	depth int
	// outer lists the entries of the outermost array, bounds its brackets.
	outer  []span
	bounds [2]int
}

// decode reads one JSON text with optional white space around it.
func (d *decoder) decode() (value, error) {
	v, err := d.value()
	if err != nil {
		return value{}, err
	}
	if d.skipSpace(); d.pos != len(d.raw) {
		return value{}, badProperties(reasonSyntax)
	}
	return v, nil
}

func (d *decoder) skipSpace() {
	for d.pos < len(d.raw) && bytes.IndexByte([]byte(" \t\r\n"), d.raw[d.pos]) >= 0 {
		d.pos++
	}
}

// peek is the next byte, or 0 at the end; a 0 in the text is no JSON either.
func (d *decoder) peek() byte {
	if d.pos < len(d.raw) {
		return d.raw[d.pos]
	}
	return 0
}

func (d *decoder) take(token string) bool {
	if !bytes.HasPrefix(d.raw[d.pos:], []byte(token)) {
		return false
	}
	d.pos += len(token)
	return true
}

func (d *decoder) value() (value, error) {
	d.skipSpace()
	switch c := d.peek(); {
	case c == '{':
		return d.nested(d.object)
	case c == '[':
		return d.nested(d.list)
	case c == '"':
		s, err := d.str()
		return text(s), err
	case c == '-' || isDigit(c):
		return d.number()
	case d.take("null"):
		return value{}, nil
	case d.take("true"):
		return truth(true), nil
	case d.take("false"):
		return truth(false), nil
	}
	return value{}, badProperties(reasonSyntax)
}

// nested reads one array or object and counts it against the depth limit.
func (d *decoder) nested(body func() (value, error)) (value, error) {
	if d.depth >= maxDepth {
		return value{}, badProperties(reasonDepth)
	}
	open := d.pos
	d.pos++
	d.depth++
	v, err := body()
	d.depth--
	if d.depth == 0 {
		d.bounds = [2]int{open, d.pos - 1}
	}
	return v, err
}

func (d *decoder) list() (value, error) {
	v := list(nil)
	for first := true; ; first = false {
		d.skipSpace()
		if first && d.take("]") {
			return v, nil
		}
		item, err := d.entry(strconv.Itoa(len(v.items)))
		if err != nil {
			return value{}, err
		}
		v.items = append(v.items, item)
		d.skipSpace()
		if d.take("]") {
			return v, nil
		}
		if !d.take(",") {
			return value{}, badProperties(reasonSyntax)
		}
	}
}

func (d *decoder) object() (value, error) {
	v := keyed()
	seen := map[string]int{}
	for first := true; ; first = false {
		d.skipSpace()
		if first && d.take("}") {
			return v, nil
		}
		m, err := d.member()
		if err != nil {
			return value{}, err
		}
		v.put(seen, m)
		d.skipSpace()
		if d.take("}") {
			return v, nil
		}
		if !d.take(",") {
			return value{}, badProperties(reasonSyntax)
		}
	}
}

// put is PHP's array assignment: the last value of a key wins and stands where
// the key first stood.
func (v *value) put(seen map[string]int, m member) {
	if at, ok := seen[m.key]; ok {
		v.items[at] = m.value
		return
	}
	seen[m.key] = len(v.items)
	v.keys = append(v.keys, m.key)
	v.items = append(v.items, m.value)
}

func (d *decoder) member() (member, error) {
	if d.peek() != '"' {
		return member{}, badProperties(reasonSyntax)
	}
	key, err := d.str()
	if err != nil {
		return member{}, err
	}
	if d.skipSpace(); !d.take(":") {
		return member{}, badProperties(reasonSyntax)
	}
	v, err := d.entry(key)
	return member{key, v}, err
}

// entry reads one value and remembers where it stands if it is an outer one.
func (d *decoder) entry(key string) (value, error) {
	d.skipSpace()
	start := d.pos
	v, err := d.value()
	if d.depth == 1 {
		d.outer = append(d.outer, span{key: key, start: start, end: d.pos})
	}
	return v, err
}
