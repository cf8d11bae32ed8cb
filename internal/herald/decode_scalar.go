package herald

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// number follows PHP: what does not fit 64 bits becomes a float, and so does
// everything with a point or an exponent. "-0" is the integer 0, "-0.0" is not.
func (d *decoder) number() (value, error) {
	start := d.pos
	d.take("-")
	if !d.take("0") && !d.digits() {
		return value{}, badProperties(reasonSyntax)
	}
	fraction := d.take(".")
	if fraction && !d.digits() {
		return value{}, badProperties(reasonSyntax)
	}
	exponent := d.take("e") || d.take("E")
	if exponent {
		_ = d.take("+") || d.take("-")
		if !d.digits() {
			return value{}, badProperties(reasonSyntax)
		}
	}
	literal := string(d.raw[start:d.pos])
	if !fraction && !exponent {
		if n, err := strconv.ParseInt(literal, 10, 64); err == nil {
			return whole(n), nil
		}
	}
	// The only possible error is a range error, whose value is the infinity
	// that PHP arrives at as well.
	f, _ := strconv.ParseFloat(literal, 64)
	return value{kind: kindFloat, real: f}, nil
}

func (d *decoder) digits() bool {
	start := d.pos
	for isDigit(d.peek()) {
		d.pos++
	}
	return d.pos > start
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (d *decoder) str() (string, error) {
	d.pos++
	start := d.pos
	var out []byte
	for d.pos < len(d.raw) {
		c := d.raw[d.pos]
		switch {
		case c == '"':
			out = append(out, d.raw[start:d.pos]...)
			d.pos++
			if !utf8.Valid(out) {
				return "", badProperties(reasonUTF8)
			}
			return string(out), nil
		case c == '\\':
			out = append(out, d.raw[start:d.pos]...)
			r, err := d.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
			start = d.pos
		case c < 0x20:
			return "", badProperties(reasonSyntax)
		default:
			d.pos++
		}
	}
	return "", badProperties(reasonSyntax)
}

// escape reads one escape sequence, a surrogate pair being one.
func (d *decoder) escape() (rune, error) {
	d.pos++
	c := d.peek()
	d.pos++
	if c == 'u' {
		return d.unicode()
	}
	const names, meanings = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := bytes.IndexByte([]byte(names), c); i >= 0 {
		return rune(meanings[i]), nil
	}
	return 0, badProperties(reasonSyntax)
}

func (d *decoder) unicode() (rune, error) {
	high, ok := d.hex4()
	if !ok {
		return 0, badProperties(reasonSyntax)
	}
	if high < 0xd800 || high > 0xdfff {
		return high, nil
	}
	if high > 0xdbff || !d.take(`\u`) {
		return 0, badProperties(reasonUTF8)
	}
	low, ok := d.hex4()
	if !ok || low < 0xdc00 || low > 0xdfff {
		return 0, badProperties(reasonUTF8)
	}
	return (high-0xd800)<<10 | (low - 0xdc00) + 0x10000, nil
}

func (d *decoder) hex4() (rune, bool) {
	if len(d.raw)-d.pos < 4 {
		return 0, false
	}
	var r rune
	for _, c := range d.raw[d.pos : d.pos+4] {
		n, ok := hexDigit(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | rune(n)
	}
	d.pos += 4
	return r, true
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case isDigit(c):
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
