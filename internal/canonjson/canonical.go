package canonjson

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Canonical returns the canonical form of a JSON text (RFC 8785): sorted keys, no white space, numbers as ECMAScript
// prints them. An integer that a double cannot hold keeps all its digits. It fails as [Parse] does.
func Canonical(b []byte) ([]byte, error) {
	v, err := Parse(b)
	if err != nil {
		return nil, err
	}
	return CanonicalValue(v), nil
}

// CanonicalValue returns the canonical form of a value returned by [Parse].
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
	panic(fmt.Sprintf("canonjson: %T is not a JSON value", v))
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

// appendExact prints a number that Parse accepted. An integer that a double cannot hold exactly is printed with all its
// digits, every other number as ECMAScript prints the double.
func appendExact(out []byte, n string) []byte {
	f, _ := strconv.ParseFloat(n, 64) // Parse accepted it
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
