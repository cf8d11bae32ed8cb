package herald

import (
	"math"
	"strconv"
	"unicode/utf8"
)

const lowerHex = "0123456789abcdef"

// appendFormatted is Arcanist's PhutilJSON::encodeFormatted without the final
// newline: two spaces of indent, one entry per line, "[]" for whatever is empty.
func appendFormatted(dst []byte, v value, depth int) []byte {
	if v.kind != kindArray {
		return appendScalar(dst, v)
	}
	if len(v.items) == 0 {
		return append(dst, "[]"...)
	}
	natural := v.natural()
	open, closing := byte('{'), byte('}')
	if natural {
		open, closing = '[', ']'
	}
	dst = append(dst, open)
	for i, item := range v.items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendLine(dst, depth+1)
		if !natural {
			dst = append(appendString(dst, v.keys[i]), ": "...)
		}
		dst = appendFormatted(dst, item, depth+1)
	}
	return append(appendLine(dst, depth), closing)
}

func appendLine(dst []byte, depth int) []byte {
	dst = append(dst, '\n')
	for range depth {
		dst = append(dst, "  "...)
	}
	return dst
}

// appendScalar is json_encode with JSON_UNESCAPED_SLASHES for one scalar.
func appendScalar(dst []byte, v value) []byte {
	switch v.kind {
	case kindBool:
		return strconv.AppendBool(dst, v.truth)
	case kindInt:
		return strconv.AppendInt(dst, v.whole, 10)
	case kindFloat:
		return appendFloat(dst, v.real)
	case kindString:
		return appendString(dst, v.text)
	default:
		return append(dst, "null"...)
	}
}

// appendString escapes as PHP does: non-ASCII as \uXXXX with surrogate pairs,
// slashes and 0x7f raw. json_encode fails on bytes that are not UTF-8, and
// Phorge then concatenates the false it returns, which is nothing at all.
func appendString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		return dst
	}
	dst = append(dst, '"')
	for _, r := range s {
		dst = appendRune(dst, r)
	}
	return append(dst, '"')
}

func appendRune(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r == '\b':
		return append(dst, `\b`...)
	case r == '\f':
		return append(dst, `\f`...)
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\r':
		return append(dst, `\r`...)
	case r == '\t':
		return append(dst, `\t`...)
	case r >= 0x20 && r < utf8.RuneSelf:
		return append(dst, byte(r))
	case r > 0xffff:
		r -= 0x10000
		return appendUnit(appendUnit(dst, 0xd800+r>>10), 0xdc00+r&0x3ff)
	}
	return appendUnit(dst, r)
}

func appendUnit(dst []byte, u rune) []byte {
	return append(dst, '\\', 'u',
		lowerHex[u>>12&0xf], lowerHex[u>>8&0xf], lowerHex[u>>4&0xf], lowerHex[u&0xf])
}

// PHP's php_gcvt with serialize_precision -1 works with up to 17 digits and
// turns to the exponential form beyond them, or below 0.0001.
const (
	maxPoint = 17
	minPoint = -3
)

// appendFloat prints the shortest digits that read back as f. Infinity makes
// json_encode fail, which prints nothing.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return dst
	}
	if math.Signbit(f) {
		dst = append(dst, '-')
		f = -f
	}
	digits, point := shortest(f)
	switch {
	case point > maxPoint || point < minPoint:
		return appendExponential(dst, digits, point-1)
	case point <= 0:
		dst = append(dst, "0."...)
		return append(appendZeros(dst, -point), digits...)
	case point >= len(digits):
		return appendZeros(append(dst, digits...), point-len(digits))
	}
	dst = append(append(dst, digits[:point]...), '.')
	return append(dst, digits[point:]...)
}

// shortest splits f into its digits and the position of the decimal point
// counted from before the first digit: 0.5 is ("5", 0), 12 is ("12", 2).
func shortest(f float64) (digits []byte, point int) {
	exp := strconv.FormatFloat(f, 'e', -1, 64)
	for i := range len(exp) {
		if exp[i] == 'e' {
			point, _ = strconv.Atoi(exp[i+1:])
			break
		}
		if exp[i] != '.' {
			digits = append(digits, exp[i])
		}
	}
	return digits, point + 1
}

func appendExponential(dst, digits []byte, exponent int) []byte {
	dst = append(dst, digits[0], '.')
	if len(digits) == 1 {
		dst = append(dst, '0')
	}
	dst = append(append(dst, digits[1:]...), 'e')
	if exponent >= 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(exponent), 10)
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}
