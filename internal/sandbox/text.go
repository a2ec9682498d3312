package sandbox

import (
	"strings"
	"unicode/utf8"
)

// Text gives a program's output as text that every store takes, and whether it was something else. A character that was
// cut in half at the end is dropped.
func Text(b []byte) (s string, odd bool) {
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
