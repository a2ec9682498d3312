package canonjson

import "strings"

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// EscapePointer escapes name for use as one token of a JSON Pointer (RFC 6901): ~ becomes ~0 and / becomes ~1.
func EscapePointer(name string) string { return pointerEscaper.Replace(name) }
