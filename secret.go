package reeve

import (
	"strings"

	"reeve/internal/redact"
)

// SecretRule says what a secret must be. A shorter value occurs by chance in ordinary text, so that it could not be
// redacted; other characters fit into no header.
const SecretRule = "printable ASCII of 6 characters or more"

// SecretMark begins a reference to a secret in the spec of a tool, as in ${secret:NAME}.
const SecretMark = "${secret:"

// CheckSecret refuses a value that cannot be used as a secret. It ignores line breaks at the end, as files have them.
func CheckSecret(value string) error {
	value = strings.TrimRight(value, "\r\n")
	switch {
	case len(value) < redact.MinStored:
		return InvalidField("/value", "is too short for a secret: it would occur by chance and could not be redacted",
			SecretRule)
	case strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r > 0x7e }):
		return InvalidField("/value", "cannot be used as a secret", SecretRule)
	case strings.Contains(value, Redacted):
		return InvalidField("/value", "holds the mark that replaces a secret where it is shown", "the secret itself")
	}
	return nil
}
