package reeve

import "strings"

// SecretRule is what a secret must be: anything shorter occurs by chance, and could not be taken out of an answer; anything else fits into no header.
const SecretRule = "printable ASCII of 4 characters or more"

// SecretMark begins a reference to a secret in the spec of a tool, as in ${secret:NAME}.
const SecretMark = "${secret:"

// CheckSecret tells whether a value can be used as a secret. Files that hold one tend to end in a newline, which is not part of it.
func CheckSecret(value string) error {
	value = strings.TrimRight(value, "\r\n")
	if len(value) < 4 || strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
		return Wrong("/value", "cannot be used as a secret", SecretRule)
	}
	return nil
}
