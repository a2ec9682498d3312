package gate

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"reeve"
)

// escaped is a character that stands escaped in a text: where in the text, and where in what the text says.
type escaped struct{ source, said reeve.Range }

// unescape gives what a text says where it escapes characters: as JSON and JavaScript do, as addresses do, or as HTML does.
func unescape(text string) (string, []escaped) {
	if !strings.ContainsAny(text, `\%&`) {
		return text, nil
	}
	var out strings.Builder
	var all []escaped
	done := 0
	for i := 0; i < len(text); {
		said, n := "", 0
		switch text[i] {
		case '\\':
			said, n = backslash(text[i:])
		case '%':
			if b, ok := hexByte(text[i+1:]); ok {
				said, n = string([]byte{b}), 3
			}
		case '&':
			said, n = entity(text[i:])
		}
		if n == 0 {
			i++
			continue
		}
		out.WriteString(text[done:i])
		at := out.Len()
		out.WriteString(said)
		all = append(all, escaped{source: reeve.Range{From: i, To: i + n}, said: reeve.Range{From: at, To: out.Len()}})
		i += n
		done = i
	}
	out.WriteString(text[done:])
	return out.String(), all
}

// backslash reads an escape of JSON or JavaScript; no bytes mean that there is none.
func backslash(s string) (said string, n int) {
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
		r, ok := unit(s)
		if !ok {
			return "", 0
		}
		if !utf16.IsSurrogate(r) {
			return string(r), 6
		}
		if low, ok := unit(s[6:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return string(utf16.DecodeRune(r, low)), 12
		}
	}
	return "", 0
}

// unit reads \uXXXX.
func unit(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	high, ok := hexByte(s[2:])
	low, also := hexByte(s[4:])
	return rune(high)<<8 | rune(low), ok && also
}

func hexByte(s string) (byte, bool) {
	if len(s) < 2 {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:2], 16, 8)
	return byte(n), err == nil
}

// entity reads an entity of HTML: &lt; &#60; or &#x3c;
func entity(s string) (said string, n int) {
	const longest = 32
	end := strings.IndexByte(s[:min(len(s), longest)], ';')
	if end < 0 {
		return "", 0
	}
	if said = html.UnescapeString(s[:end+1]); strings.HasPrefix(said, "&") && said != "&" {
		return "", 0
	}
	return said, end + 1
}

// inSource is where a part of what a text says stands in the text: with the whole of each escape that it touches.
func inSource(r reeve.Range, all []escaped) reeve.Range {
	at := func(place int, end bool) int {
		n, _ := slices.BinarySearchFunc(all, place, func(e escaped, place int) int { // the first one that begins after the place
			if e.said.From < place || e.said.From == place && !end {
				return -1
			}
			return 1
		})
		if n == 0 {
			return place
		}
		e := all[n-1]
		switch {
		case !end && place < e.said.To:
			return e.source.From
		case place <= e.said.To:
			return e.source.To
		}
		return e.source.To + place - e.said.To
	}
	return reeve.Range{From: at(r.From, false), To: at(r.To, true)}
}
