package model

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// fragment is a streamed fragment of text. JSON writes characters outside the BMP as two surrogates, and a provider may
// end a fragment between them. A fragment keeps such an unpaired surrogate at its beginning or end as three bytes,
// encoded like UTF-8. draftPart.joinFragment joins the two halves.
type fragment string

// UnmarshalJSON implements json.Unmarshaler.
func (p *fragment) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	// The json package replaces an unpaired surrogate with U+FFFD.
	const replacement, escape = len("\uFFFD"), len(`\ud83d`)
	if len(raw) > escape+1 && len(text) >= replacement { // raw includes the quotes
		if h, ok := parseSurrogate(raw[1 : 1+escape]); ok && h >= 0xDC00 {
			text = encodeSurrogate(h) + text[replacement:]
		}
		end := len(raw) - 1 - escape
		before := raw[:end]
		slashes := len(before) - len(strings.TrimRight(string(before), `\`))
		if h, ok := parseSurrogate(raw[end : end+escape]); ok && h < 0xDC00 && slashes%2 == 0 {
			text = text[:len(text)-replacement] + encodeSurrogate(h)
		}
	}
	*p = fragment(text)
	return nil
}

// parseSurrogate parses a \uXXXX escape and reports whether it is a surrogate.
func parseSurrogate(escape []byte) (rune, bool) {
	if escape[0] != '\\' || escape[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(escape[2:]), 16, 16)
	return rune(n), err == nil && utf16.IsSurrogate(rune(n))
}

// encodeSurrogate returns a surrogate as three bytes, as a fragment keeps it.
func encodeSurrogate(h rune) string {
	return string([]byte{0xED, 0x80 | byte(h>>6&0x3F), 0x80 | byte(h&0x3F)})
}

// decodeSurrogate returns the surrogate at an offset of a text, if there is one.
func decodeSurrogate(text string, at int) (rune, bool) {
	if at < 0 || len(text) < at+3 || text[at] != 0xED || text[at+1] < 0xA0 {
		return 0, false
	}
	return 0xD000 | rune(text[at+1]&0x3F)<<6 | rune(text[at+2]&0x3F), true
}

// joinFragment returns the text of a fragment, with the pending surrogate of the previous fragment before it. It keeps
// a surrogate at the end as pending. It replaces NUL characters, which databases cannot store in text.
func (p *draftPart) joinFragment(next fragment) string {
	text := p.pending + string(next)
	p.pending = ""
	if h, ok := decodeSurrogate(text, len(text)-3); ok && h < 0xDC00 {
		text, p.pending = text[:len(text)-3], text[len(text)-3:]
	}
	if first, ok := decodeSurrogate(text, 0); ok {
		second, _ := decodeSurrogate(text, 3)
		r, n := utf16.DecodeRune(first, second), 6
		if r == utf8.RuneError {
			n = 3
		}
		text = string(r) + strings.ToValidUTF8(text[n:], "\uFFFD")
	}
	return strings.ReplaceAll(text, "\x00", "\uFFFD")
}
