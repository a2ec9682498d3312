package mailbox

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"

	"reeve"
)

// decodeText decodes bytes in the charset that a mail declares. Many mails declare a wrong one: invalid UTF-8 or ASCII
// is decoded as Windows-1252, in which every byte is valid.
func (l *messageParser) decodeText(b []byte, charset string) string {
	name := strings.ToLower(strings.Trim(charset, ` "'`))
	switch name {
	case "", "utf-8", "utf8", "us-ascii", "ascii", "ansi_x3.4-1968", "unknown-8bit", "x-unknown", "7bit", "8bit",
		"binary":
		return l.guessText(b, name)
	}
	e, err := htmlindex.Get(name)
	if err != nil {
		if e, err = ianaindex.MIME.Encoding(name); err != nil || e == nil {
			l.note("the charset %q is unknown", reeve.Truncate(name, 40))
			return l.guessText(b, "")
		}
	}
	if e == encoding.Replacement {
		return l.guessText(b, name)
	}
	out, err := e.NewDecoder().Bytes(b)
	if err != nil {
		l.note("its text is not in the charset it says")
		return l.guessText(b, "")
	}
	return string(out)
}

func (l *messageParser) guessText(b []byte, name string) string {
	if utf8.Valid(b) {
		return string(b)
	}
	for i := 1; i < utf8.UTFMax && i < len(b); i++ { // the text was cut inside a character
		if whole, rest := b[:len(b)-i], b[len(b)-i:]; !utf8.FullRune(rest) && utf8.Valid(whole) {
			return string(whole)
		}
	}
	if name != "" {
		l.note("its text is not in the charset it says")
	}
	out, err := charmap.Windows1252.NewDecoder().Bytes(b)
	if err != nil {
		return strings.ToValidUTF8(string(b), "\uFFFD")
	}
	return string(out)
}
