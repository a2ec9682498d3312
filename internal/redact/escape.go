package redact

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// escape is one escaped character: its range in the source and in the decoded text.
type escape struct{ source, plain Range }

// decodeEscapes decodes the escapes of JSON, JavaScript, URLs and HTML in text. It returns the decoded text and the
// escapes.
func decodeEscapes(text string) (string, []escape) {
	if !strings.ContainsAny(text, `\%&`) {
		return text, nil
	}
	var out strings.Builder
	var escapes []escape
	done := 0
	for i := 0; i < len(text); {
		plain, n := escapeAt(text[i:])
		if n == 0 {
			i++
			continue
		}
		out.WriteString(text[done:i])
		at := out.Len()
		out.WriteString(plain)
		escapes = append(escapes, escape{Range{From: i, To: i + n}, Range{From: at, To: out.Len()}})
		i += n
		done = i
	}
	out.WriteString(text[done:])
	return out.String(), escapes
}

// escapeAt decodes the escape at the start of s. It returns n = 0 if there is none.
func escapeAt(s string) (plain string, n int) {
	switch s[0] {
	case '\\':
		return backslashEscape(s)
	case '%':
		if b, ok := hexByte(s[1:]); ok {
			return string([]byte{b}), 3
		}
	case '&':
		return htmlEntity(s)
	}
	return "", 0
}

// backslashEscape decodes an escape of JSON or JavaScript.
func backslashEscape(s string) (plain string, n int) {
	if len(s) < 2 {
		return "", 0
	}
	switch s[1] {
	case '\\', '/', '"', '\'', '`':
		return s[1:2], 2
	case 'n':
		return "\n", 2
	case 't':
		return "\t", 2
	case 'r':
		return "\r", 2
	case 'b':
		return "\b", 2
	case 'f':
		return "\f", 2
	case 'x':
		if b, ok := hexByte(s[2:]); ok {
			return string([]byte{b}), 4
		}
	case 'u':
		r, ok := utf16Unit(s)
		if !ok {
			return "", 0
		}
		if !utf16.IsSurrogate(r) {
			return string(r), 6
		}
		if low, ok := utf16Unit(s[6:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return string(utf16.DecodeRune(r, low)), 12
		}
	}
	return "", 0
}

// utf16Unit parses \uXXXX.
func utf16Unit(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	high, ok1 := hexByte(s[2:])
	low, ok2 := hexByte(s[4:])
	return rune(high)<<8 | rune(low), ok1 && ok2
}

func hexByte(s string) (byte, bool) {
	if len(s) < 2 {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:2], 16, 8)
	return byte(n), err == nil
}

// htmlEntity decodes an entity such as &lt; &#60; or &#x3c;
func htmlEntity(s string) (plain string, n int) {
	const longest = 32
	end := 1
	for end < min(len(s), longest) && (isAlnum(s[end]) || s[end] == '#') {
		end++
	}
	if end == len(s) || s[end] != ';' {
		return "", 0
	}
	plain = html.UnescapeString(s[:end+1])
	if strings.HasPrefix(plain, "&") && plain != "&" {
		return "", 0
	}
	return plain, end + 1
}

// trimPartialEscape removes an incomplete escape from the end of text, such as \u00 or %C or &am.
func trimPartialEscape(text string) string {
	i := len(text)
	for i > 0 && len(text)-i < len(`\u000`) && (isAlnum(text[i-1]) || text[i-1] == '#') {
		i--
	}
	if i == 0 || strings.IndexByte(`\%&`, text[i-1]) < 0 {
		return text
	}
	if _, escapes := decodeEscapes(text[i-1:]); len(escapes) > 0 {
		return text
	}
	return text[:i-1]
}

// endsEscape reports whether text ends with an escape such as \n, \u003d, \x3d or %3D, or with a terminal's colour
// code.
func endsEscape(text string) bool {
	tail := func(n int) string { return text[max(0, len(text)-n):] }
	if _, ok := utf16Unit(tail(6)); ok { // also the second half of a surrogate pair
		return true
	}
	for _, n := range []int{2, 3, 4} {
		s := tail(n)
		if len(s) == n && (s[0] == '\\' || s[0] == '%') {
			if _, took := escapeAt(s); took == n {
				return true
			}
		}
	}
	s, ok := strings.CutSuffix(tail(12), "m")
	if !ok {
		return false
	}
	s = strings.TrimRight(s, "0123456789;")
	return strings.HasSuffix(s, "[")
}

// sourceThrough maps a range in a text that was decoded in several layers to a range in the source.
func sourceThrough(r Range, layers [][]escape) Range {
	for _, escapes := range slices.Backward(layers) {
		r = Range{From: sourceOf(r.From, escapes, false), To: sourceOf(r.To, escapes, true)}
	}
	return r
}

// sourceOf maps an offset in the decoded text to an offset in the source. An offset within an escape is mapped to the
// start of the escape or, if end is set, to its end.
func sourceOf(place int, escapes []escape, end bool) int {
	// n is the first escape that starts after place
	n, _ := slices.BinarySearchFunc(escapes, place, func(e escape, place int) int {
		if e.plain.From < place || e.plain.From == place && !end {
			return -1
		}
		return 1
	})
	if n == 0 {
		return place
	}
	e := escapes[n-1]
	switch {
	case !end && place < e.plain.To:
		return e.source.From
	case place <= e.plain.To:
		return e.source.To
	}
	return e.source.To + place - e.plain.To
}
