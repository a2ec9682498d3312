package sandbox

import (
	"strings"
	"unicode/utf8"
)

// DecodeText converts a program's output to valid UTF-8 without NUL characters, so that every store accepts it.
// It replaces each invalid sequence and each NUL by U+FFFD, and reports whether it replaced any. An incomplete
// character at the end is dropped, because a limit may have cut it.
func DecodeText(b []byte) (s string, replaced bool) {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if utf8.RuneStart(b[len(b)-n]) {
			if !utf8.FullRune(b[len(b)-n:]) {
				b = b[:len(b)-n]
			}
			break
		}
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(string(b), "\ufffd"), "\x00", "\ufffd")
	return s, s != string(b)
}
