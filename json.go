package reeve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deeply arguments may nest.
const maxDepth = 100

// Integers says which whole numbers the API's own fields take: those that a double tells apart.
const Integers = "from -9007199254740991 to 9007199254740991"

var tooDeep = fmt.Sprintf("nesting deeper than %d", maxDepth)

// ParseJSON reads one JSON value, strictly: valid UTF-8, no duplicate keys, no lone surrogates, no number beyond the
// range of a
// double, nothing after the value. Numbers come as json.Number, in the digits that were sent.
func ParseJSON(b []byte) (any, error) {
	if !utf8.Valid(b) {
		return nil, wrongJSON(b, invalidUTF8At(b), "bytes that are not UTF-8")
	}
	if !json.Valid(b) {
		return nil, syntax(b, json.Unmarshal(b, new(json.RawMessage)))
	}
	p := parser{src: b}
	return p.value(0)
}

// parser reads a text that is known to be valid JSON.
type parser struct {
	src []byte
	at  int
}

// next is the first byte that is no space.
func (p *parser) next() byte {
	for {
		switch c := p.src[p.at]; c {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return c
		}
	}
}

func (p *parser) value(depth int) (any, error) {
	switch c := p.next(); c {
	case '{', '[':
		if depth >= maxDepth {
			return nil, wrongJSON(p.src, p.at, tooDeep)
		}
		p.at++
		if c == '{' {
			return p.object(depth)
		}
		return p.array(depth)
	case '"':
		return p.text()
	case 't':
		p.at += len("true")
		return true, nil
	case 'f':
		p.at += len("false")
		return false, nil
	case 'n':
		p.at += len("null")
		return nil, nil
	}
	return p.number()
}

func (p *parser) object(depth int) (any, error) {
	m := map[string]any{}
	for p.next() != '}' {
		at := p.at
		key, err := p.text()
		if err != nil {
			return nil, err
		}
		if _, dup := m[key]; dup {
			return nil, wrongJSON(p.src, at, fmt.Sprintf("the key %q twice in one object", key))
		}
		p.next() // the colon
		p.at++
		if m[key], err = p.value(depth + 1); err != nil {
			return nil, err
		}
		p.comma()
	}
	p.at++
	return m, nil
}

func (p *parser) array(depth int) (any, error) {
	list := []any{}
	for p.next() != ']' {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		p.comma()
	}
	p.at++
	return list, nil
}

func (p *parser) comma() {
	if p.next() == ',' {
		p.at++
	}
}

// text reads a string. Most have nothing to decode.
func (p *parser) text() (s string, err error) {
	start, plain := p.at, true
	for p.at++; p.src[p.at] != '"'; p.at++ {
		if p.src[p.at] == '\\' {
			plain = false
			p.at++
		}
	}
	p.at++
	raw := p.src[start:p.at]
	if plain {
		return string(raw[1 : len(raw)-1]), nil
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", err // it is a valid string
	}
	return s, p.surrogates(start, raw, s)
}

// longest is how many characters a number may have. Every double fits, written out; to reckon with a million digits
// takes seconds.
const longest = 2000

// number refuses what is beyond the range of a double, and what is too long to reckon with.
func (p *parser) number() (n json.Number, err error) {
	at := p.at
	for p.at < len(p.src) && strings.IndexByte("+-.0123456789eE", p.src[p.at]) >= 0 {
		p.at++
	}
	n = json.Number(p.src[at:p.at])
	if len(n) > longest {
		return n, wrongJSON(p.src, at, "the number "+Truncate(string(n), 24)+", which is longer than "+
			strconv.Itoa(longest)+" characters")
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsInf(f, 0) || f == 0 && !isZero(string(n)) {
		return n, wrongJSON(p.src, at, "the number "+Truncate(string(n), 24)+", which is out of range")
	}
	return n, nil
}

// isZero tells whether a number is written as nothing but zeros, whatever its exponent.
func isZero(n string) bool {
	if i := strings.IndexAny(n, "eE"); i >= 0 {
		n = n[:i]
	}
	return strings.Trim(n, "-0.") == ""
}

// surrogates refuses a lone surrogate: the decoder turns it into U+FFFD in silence.
func (p *parser) surrogates(at int, raw []byte, s string) error {
	if !strings.ContainsRune(s, utf8.RuneError) {
		return nil
	}
	for i := 0; i+5 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] != 'u' {
			i++
			continue
		}
		r := hex4(raw[i+2:])
		if !utf16.IsSurrogate(r) {
			i += 5
			continue
		}
		if i+11 < len(raw) && raw[i+6] == '\\' && raw[i+7] == 'u' &&
			utf16.DecodeRune(r, hex4(raw[i+8:])) != utf8.RuneError {
			i += 11
			continue
		}
		return wrongJSON(p.src, at, "a lone surrogate in a string")
	}
	return nil
}

func hex4(b []byte) rune {
	n, err := strconv.ParseUint(string(b[:4]), 16, 32)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}

// syntax says what is wrong with a text that is not valid, and where.
func syntax(src []byte, err error) error {
	var se *json.SyntaxError
	switch {
	case !errors.As(err, &se):
		return wrongJSON(src, 0, err.Error())
	case int(se.Offset) >= len(src) && strings.HasPrefix(se.Error(), "unexpected end"):
		return wrongJSON(src, len(src), "the end of the text inside a value: it is cut off")
	case strings.HasSuffix(se.Error(), "exceeded max depth"):
		return wrongJSON(src, int(se.Offset), tooDeep)
	case strings.HasSuffix(se.Error(), "after top-level value"):
		return wrongJSON(src, int(se.Offset)-1, "more after the end of the value")
	}
	return wrongJSON(src, int(se.Offset), strings.TrimPrefix(se.Error(), "json: "))
}

func wrongJSON(src []byte, at int, what string) *Error {
	line := 1 + bytes.Count(src[:at], []byte{'\n'})
	return &Error{Code: Validation, Message: fmt.Sprintf("not valid JSON: %s, at byte %d (line %d)", what, at, line),
		Fields: []Field{{Message: what, Expected: "one valid JSON value"}}}
}

func invalidUTF8At(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// Canonical gives the canonical form of a JSON text (RFC 8785): sorted keys, no space, numbers as ECMAScript prints
// them. RFC 8785
// has no form for a whole number that a double cannot hold; here it keeps all of its digits.
func Canonical(b []byte) ([]byte, error) {
	v, err := ParseJSON(b)
	if err != nil {
		return nil, err
	}
	return CanonicalValue(v), nil
}

// CanonicalValue gives the canonical form of a value made by [ParseJSON].
func CanonicalValue(v any) []byte { return appendCanonical(make([]byte, 0, 64), v) }

func appendCanonical(out []byte, v any) []byte {
	switch t := v.(type) {
	case nil:
		return append(out, "null"...)
	case bool:
		return strconv.AppendBool(out, t)
	case json.Number:
		return appendExact(out, string(t))
	case float64:
		return appendNumber(out, t)
	case string:
		return appendString(out, t)
	case []any:
		out = append(out, '[')
		for i, e := range t {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendCanonical(out, e)
		}
		return append(out, ']')
	case map[string]any:
		keys := make([]string, 0, len(t))
		for k := range t {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, compareUTF16)
		out = append(out, '{')
		for i, k := range keys {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendString(out, k), ':')
			out = appendCanonical(out, t[k])
		}
		return append(out, '}')
	}
	panic(fmt.Sprintf("reeve: %T is not a JSON value", v))
}

// compareUTF16 orders keys as ECMAScript does, by UTF-16 code units.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		ra, na := utf8.DecodeRuneInString(a)
		rb, nb := utf8.DecodeRuneInString(b)
		if ra != rb {
			return slices.Compare(utf16.AppendRune(nil, ra), utf16.AppendRune(nil, rb))
		}
		a, b = a[na:], b[nb:]
	}
	return len(a) - len(b)
}

// appendExact prints a number that ParseJSON let pass: as ECMAScript prints the double, or, for a whole number that the
// double does
// not hold exactly, all of its digits.
func appendExact(out []byte, n string) []byte {
	f, _ := strconv.ParseFloat(n, 64) // ParseJSON let it pass
	if math.Abs(f) < 1<<53 {
		return appendNumber(out, f)
	}
	if strings.ContainsAny(n, ".eE") {
		exact, ok := new(big.Rat).SetString(n)
		if !ok || !exact.IsInt() {
			return appendNumber(out, f)
		}
		n = exact.Num().String()
	}
	if strconv.FormatFloat(f, 'f', -1, 64) == n {
		return appendNumber(out, f)
	}
	return append(out, n...)
}

// appendNumber prints a double as ECMAScript's Number.prototype.toString does.
func appendNumber(out []byte, f float64) []byte {
	if f == 0 {
		return append(out, '0') // also for -0
	}
	abs := math.Abs(f)
	if abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	mant, exp, _ := strings.Cut(s, "e")
	sign, digits := exp[:1], strings.TrimLeft(exp[1:], "0")
	return append(out, mant+"e"+sign+digits...)
}

const hexDigits = "0123456789abcdef"

func appendString(out []byte, s string) []byte {
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= 0x20:
			out = append(out, c)
		default:
			short := strings.IndexByte("\b\t\n\f\r", c)
			if short >= 0 {
				out = append(out, '\\', "btnfr"[short])
			} else {
				out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
		}
	}
	return append(out, '"')
}

// EscapePointer writes a name as a part of a JSON Pointer (RFC 6901): ~1 stands for a slash and ~0 for a tilde.
func EscapePointer(name string) string { return pointerEscaper.Replace(name) }

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")
