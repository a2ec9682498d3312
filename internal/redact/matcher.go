package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MinStored is the minimum length of stored values that are redacted. Shorter values occur by chance in ordinary words.
const MinStored = 6

// keyLen is how many bytes select the candidates at a position.
const keyLen = 4

// matcher finds any of many values in one pass over a text. It selects candidates by their first four bytes.
type matcher struct {
	may     [1 << 16]bool // indexed by a hash of four bytes; true if a value may start with them
	byKey   map[uint32][]string
	longest int
}

func newMatcher(values []string) *matcher {
	m := &matcher{byKey: map[uint32][]string{}}
	slices.SortFunc(values, func(a, b string) int { // the longest value first
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	for _, v := range slices.Compact(values) {
		if len(v) < keyLen {
			continue
		}
		key := firstFour(v)
		m.may[hashKey(key)] = true
		m.byKey[key] = append(m.byKey[key], v)
		m.longest = max(m.longest, len(v))
	}
	return m
}

func firstFour(s string) uint32 { return binary.LittleEndian.Uint32([]byte(s[:keyLen])) }

// hashKey maps a key to 16 bits by Fibonacci hashing.
func hashKey(key uint32) uint32 { return key * 2654435761 >> 16 }

// find returns the ranges of values in text, without decoding. Overlapping ranges are joined.
func (m *matcher) find(text string) (found []Range) {
	if len(m.byKey) == 0 {
		return nil
	}
	for i := 0; i+keyLen <= len(text); i++ {
		key := firstFour(text[i:])
		if !m.may[hashKey(key)] {
			continue
		}
		for _, v := range m.byKey[key] {
			if !strings.HasPrefix(text[i:], v) {
				continue
			}
			if n := len(found); n > 0 && i < found[n-1].To {
				found[n-1].To = max(found[n-1].To, i+len(v))
			} else {
				found = append(found, Range{From: i, To: i + len(v)})
			}
			break
		}
	}
	return found
}

// maxLayers is how many layers of escapes are decoded, as in JSON within JSON within a URL.
const maxLayers = 4

// findEncoded is like find but also decodes escapes of JSON, URLs and HTML. A text may escape all characters of a value
// or only some.
func (m *matcher) findEncoded(text string) []Range {
	if len(m.byKey) == 0 {
		return nil
	}
	found := m.find(text)
	if lowered, ok := lowerMixedHex(text, 2*MinStored); ok {
		found = append(found, m.find(lowered)...)
	}
	var layers [][]escape
	for range maxLayers {
		plain, escapes := decodeEscapes(text)
		if len(escapes) == 0 {
			break
		}
		text, layers = plain, append(layers, escapes)
		for _, r := range m.find(text) {
			found = append(found, sourceThrough(r, layers))
		}
	}
	return mergeRanges(found)
}

// findPartial returns the offset of a value that is cut off by the end of text, or len(text). The value may be escaped,
// and the last escape may be incomplete.
func (m *matcher) findPartial(text string) int {
	first := len(text)
	if len(m.byKey) == 0 {
		return first
	}
	var layers [][]escape
	for {
		cut := trimPartialEscape(text)
		lowered, _ := lowerMixedHex(text, keyLen)
		for _, end := range []string{text, lowered, cut, trimPartialEscape(cut)} {
			if at, ok := m.prefixAtEnd(end); ok {
				first = min(first, sourceThrough(Range{From: at, To: len(text)}, layers).From)
			}
		}
		plain, escapes := decodeEscapes(text)
		if len(escapes) == 0 || len(layers) == maxLayers {
			return first
		}
		text, layers = plain, append(layers, escapes)
	}
}

// prefixAtEnd returns the offset of a value of which only a prefix of at least four bytes is at the end of text.
func (m *matcher) prefixAtEnd(text string) (at int, ok bool) {
	for i := max(0, len(text)-m.longest); i+keyLen <= len(text); i++ {
		key := firstFour(text[i:])
		if !m.may[hashKey(key)] {
			continue
		}
		for _, v := range m.byKey[key] {
			if strings.HasPrefix(v, text[i:]) {
				return i, true
			}
		}
	}
	return 0, false
}

// lowerMixedHex lowers the hexadecimal numbers in text that mix upper and lower case and have at least n digits. It
// reports whether there are any.
func lowerMixedHex(text string, n int) (lowered string, ok bool) {
	var out []byte
	for i := 0; i < len(text); i++ {
		k := prefixLen(text[i:], hexDigits|upper)
		run := text[i : i+k]
		if low := strings.ToLower(run); k >= n && low != run && strings.ToUpper(run) != run && isHex(low) {
			if out == nil {
				out = []byte(text)
			}
			copy(out[i:], low)
		}
		i += k
	}
	if out == nil {
		return text, false
	}
	return string(out), true
}

func isHex(low string) bool { return prefixLen(low, hexDigits) == len(low) }

// encodings returns a value unchanged, with plus signs as in a form, and, also as a part of a JSON string, in
// hexadecimal and in base64. Escaped characters are decoded in the text instead. A value that itself contains escapes
// is also returned decoded, because it is compared with decoded text.
func encodings(v string) []string {
	all := []string{v}
	for _, s := range jsonForms(v) {
		lower := hex.EncodeToString([]byte(s))
		all = append(append(all, base64Encodings(s)...), lower, strings.ToUpper(lower))
	}
	if strings.Contains(v, " ") {
		all = append(all, strings.ReplaceAll(v, " ", "+"))
	}
	for _, s := range slices.Clone(all) {
		for range maxLayers {
			plain, escapes := decodeEscapes(s)
			if len(escapes) == 0 {
				break
			}
			s, all = plain, append(all, plain)
		}
	}
	return all
}

// jsonForms returns a value as it is and as programs write it into JSON: with or without escapes for HTML, for slashes
// and for characters beyond ASCII.
func jsonForms(v string) []string {
	plain := jsonContent(v)
	forms := []string{v, plain}
	if s, err := json.Marshal(v); err == nil {
		forms = append(forms, string(s[1:len(s)-1]))
	}
	var ascii strings.Builder
	for _, unit := range utf16.Encode([]rune(plain)) {
		if unit < utf8.RuneSelf {
			ascii.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&ascii, `\u%04x`, unit)
		}
	}
	for _, s := range []string{plain, ascii.String()} {
		forms = append(forms, s, strings.ReplaceAll(s, "/", `\/`))
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// minBase64 is the shortest sequence of base64 characters that identifies a value of MinStored bytes.
const minBase64 = 7

// base64Encodings returns a value in base64. It also returns the characters that do not depend on adjacent bytes, such
// as the user name in Basic authentication.
func base64Encodings(v string) []string {
	all := []string{base64.StdEncoding.EncodeToString([]byte(v)), base64.URLEncoding.EncodeToString([]byte(v))}
	for before := range 3 {
		first := (8*before + 5) / 6       // the first character that does not depend on bytes before the value
		last := 8 * (before + len(v)) / 6 // the end of the characters that do not depend on bytes after the value
		for _, enc := range [...]*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if s := enc.EncodeToString(append(make([]byte, before), v...))[first:last]; len(s) >= minBase64 {
				all = append(all, s)
			}
		}
	}
	return all
}
