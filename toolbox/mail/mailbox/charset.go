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

// decode makes text of bytes in the charset that a mail says they are in. Many mails say it wrong: what should be UTF-8
// or ASCII and is not is read as Windows-1252, which every byte is something in.
func (l *letter) decode(b []byte, charset string) string {
	name := strings.ToLower(strings.Trim(charset, ` "'`))
	switch name {
	case "", "utf-8", "utf8", "us-ascii", "ascii", "ansi_x3.4-1968", "unknown-8bit", "x-unknown", "7bit", "8bit",
		"binary":
		return l.guess(b, name)
	}
	e, err := htmlindex.Get(name)
	if err != nil {
		if e, err = ianaindex.MIME.Encoding(name); err != nil || e == nil {
			l.note("the charset %q is not known", reeve.Truncate(name, 40))
			return l.guess(b, "")
		}
	}
	if e == encoding.Replacement {
		return l.guess(b, name)
	}
	out, err := e.NewDecoder().Bytes(b)
	if err != nil {
		l.note("its text is not in the charset it says")
		return l.guess(b, "")
	}
	return string(out)
}

func (l *letter) guess(b []byte, name string) string {
	if utf8.Valid(b) {
		return string(b)
	}
	for i := 1; i < utf8.UTFMax && i < len(b); i++ { // it was cut inside a character
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
