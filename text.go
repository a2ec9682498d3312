package reeve

import (
	"strings"
	"unicode/utf8"
)

// Truncate gives the beginning of a text that is longer than so many bytes, in whole characters, and says that there is
// more.
func Truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// SanitizeText makes any text one that both databases take. It is for what must be recorded whatever it is, like a
// tool's output, or how a run ended.
func SanitizeText(text string) string {
	if IsStorableText(text) {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// IsStorableText tells whether both databases take a text: UTF-8 without NUL.
func IsStorableText(text string) bool {
	return utf8.ValidString(text) && strings.IndexByte(text, 0) < 0
}
