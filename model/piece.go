package model

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// piece is a piece of text as providers stream it. JSON may write a character in two halves, and a provider may end a
// piece between them. Such a half stands at the beginning or the end of a piece as the three bytes that UTF-8 would
// have for it, if it had any; draftPart.join puts halves together.
type piece string

// UnmarshalJSON implements json.Unmarshaler.
func (p *piece) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	const gone, escape = len("\uFFFD"), len(`\ud83d`)
	if len(raw) > escape+1 && len(text) >= gone { // in quotes; what json makes of a half is gone
		if h, ok := half(raw[1 : 1+escape]); ok && h >= 0xDC00 {
			text = broken(h) + text[gone:]
		}
		end := len(raw) - 1 - escape
		before := raw[:end]
		slashes := len(before) - len(strings.TrimRight(string(before), `\`))
		if h, ok := half(raw[end : end+escape]); ok && h < 0xDC00 && slashes%2 == 0 {
			text = text[:len(text)-gone] + broken(h)
		}
	}
	*p = piece(text)
	return nil
}

// half reads an escape that is half a character.
func half(escape []byte) (rune, bool) {
	if escape[0] != '\\' || escape[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(escape[2:]), 16, 16)
	return rune(n), err == nil && utf16.IsSurrogate(rune(n))
}

// broken writes half a character as a piece has it, and halfAt reads it.
func broken(h rune) string { return string([]byte{0xED, 0x80 | byte(h>>6&0x3F), 0x80 | byte(h&0x3F)}) }

func halfAt(text string, at int) (rune, bool) {
	if at < 0 || len(text) < at+3 || text[at] != 0xED || text[at+1] < 0xA0 {
		return 0, false
	}
	return 0xD000 | rune(text[at+1]&0x3F)<<6 | rune(text[at+2]&0x3F), true
}

// join gives a piece as text, with the half before it; a half at its end waits for the next. No database holds a NUL as
// text.
func (p *draftPart) join(next piece) string {
	text := p.half + string(next)
	p.half = ""
	if h, ok := halfAt(text, len(text)-3); ok && h < 0xDC00 {
		text, p.half = text[:len(text)-3], text[len(text)-3:]
	}
	if first, ok := halfAt(text, 0); ok {
		second, _ := halfAt(text, 3)
		r, n := utf16.DecodeRune(first, second), 6
		if r == utf8.RuneError {
			n = 3
		}
		text = string(r) + strings.ToValidUTF8(text[n:], "\uFFFD")
	}
	return strings.ReplaceAll(text, "\x00", "\uFFFD")
}
