package reeve

import (
	"strings"

	"reeve/internal/redact"
)

// SecretRule describes a valid secret. A shorter value would occur by chance in ordinary text and could not be
// redacted. Other characters are not allowed in HTTP headers.
const SecretRule = "printable ASCII of 6 characters or more"

// SecretMark is the beginning of a reference to a secret in a tool's spec, as in ${secret:NAME}.
const SecretMark = "${secret:"

// CheckSecret returns an error if value is not valid as a secret. It ignores line breaks at the end.
func CheckSecret(value string) error {
	value = strings.TrimRight(value, "\r\n")
	switch {
	case len(value) < redact.MinStored:
		return InvalidField("/value", "is too short: it would occur by chance in other text and could not be redacted",
			SecretRule)
	case strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r > 0x7e }):
		return InvalidField("/value", "has characters that a secret cannot have", SecretRule)
	case strings.Contains(value, Redacted):
		return InvalidField("/value", "has the text that replaces redacted secrets", "the secret itself")
	}
	return nil
}
