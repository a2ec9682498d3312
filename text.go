package reeve

import (
	"strings"
	"unicode/utf8"
)

// Truncate returns text, or its first maxBytes bytes without a partial character, followed by an ellipsis.
func Truncate(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "") + "…"
}

// SanitizeText replaces invalid UTF-8 and NUL with U+FFFD, so that both databases accept the text. It is for text that
// must be recorded in any case, such as a tool's output.
func SanitizeText(text string) string {
	if IsStorableText(text) {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// IsStorableText reports whether both databases accept the text: it is UTF-8 without NUL.
func IsStorableText(text string) bool {
	return utf8.ValidString(text) && strings.IndexByte(text, 0) < 0
}
