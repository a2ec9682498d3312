package redact

import (
	"cmp"
	"slices"
	"strings"
)

// Mark replaces a secret in redacted text.
const Mark = "[REDACTED]"

// Window is how many bytes of context Slice and Head need on both sides of a part. They recognise every secret of up to
// half that length.
const Window = 8 << 10

// Range is a part of a text, given by byte offsets.
type Range struct{ From, To int }

// Redactor finds and removes secrets. It is immutable and safe for concurrent use. A nil Redactor finds nothing.
type Redactor struct {
	stored  *matcher
	formats bool // also remove keys of known formats and credentials
	jwt     bool // also remove the signatures of JSON Web Tokens
	named   bool // also remove values after words such as "password="
}

// New returns a Redactor that removes the given values, keys of well-known formats and credentials. It ignores values
// shorter than MinStored.
func New(values []string) *Redactor {
	var encoded []string
	for _, v := range values {
		for _, s := range []string{v, strings.TrimSpace(v)} {
			if len(s) >= MinStored {
				encoded = append(encoded, encodings(s)...)
			}
		}
	}
	return &Redactor{stored: newMatcher(encoded), formats: true, jwt: true}
}

// StoredOnly returns a Redactor that removes the stored values of r and nothing else.
func (r *Redactor) StoredOnly() *Redactor {
	if r == nil {
		return nil
	}
	return &Redactor{stored: r.stored}
}

// PassTokens returns a Redactor like r that does not change JSON Web Tokens.
func (r *Redactor) PassTokens() *Redactor {
	if r == nil {
		return nil
	}
	c := *r
	c.jwt = false
	return &c
}

// MaskNamed returns a Redactor like r that also removes values after words such as "password=". Use it for logs and the
// output of commands. For data that programs process further it would remove too much.
func (r *Redactor) MaskNamed() *Redactor {
	if r == nil {
		return nil
	}
	c := *r
	c.named = true
	return &c
}

// Find returns the ranges of secrets in text, in order and without overlap.
func (r *Redactor) Find(text string) []Range {
	if r == nil {
		return nil
	}
	found := r.stored.findEncoded(text)
	if r.formats {
		found = append(found, findFormats(text, r.jwt)...)
		found = append(found, findPrivateKeys(text)...)
		found = append(found, findURLPasswords(text)...)
		found = append(found, findAuthorization(text)...)
		found = append(found, findAWSKeys(text)...)
		found = append(found, findStoredLogins(text)...)
		found = append(found, findJWKs(text)...)
	}
	if r.named {
		found = append(found, findNamed(text)...)
	}
	return mergeRanges(found)
}

// Text returns text without its secrets. JSON stays valid JSON, because each string is redacted separately and the rest
// keeps its bytes. From the values of JSON members named in fileNames only stored values are removed, so that a file
// name stays usable even if it looks like a key.
func (r *Redactor) Text(text string, fileNames ...string) string {
	if r == nil {
		return text
	}
	if isJSON(text) {
		return r.json(text, fileNames)
	}
	return Replace(text, r.Find(text))
}

// PartialSecretAt returns the offset of a secret that is cut off by the end of text, or len(text) if there is none. It
// recognises at least four bytes of a stored value, a key of a known format and a private key.
func (r *Redactor) PartialSecretAt(text string) int {
	if r == nil {
		return len(text)
	}
	far := max(0, len(text)-Window)
	at := far + r.stored.findPartial(text[far:])
	if r.formats {
		at = min(at, far+findPartialFormat(text[far:]), findPartialPrivateKey(text))
	}
	return at
}

// Replace returns text with Mark instead of each range. The ranges must be in order and must not overlap.
func Replace(text string, ranges []Range) string {
	if len(ranges) == 0 {
		return text
	}
	var out strings.Builder
	done := 0
	for _, r := range ranges {
		out.WriteString(text[done:r.From])
		out.WriteString(Mark)
		done = r.To
	}
	out.WriteString(text[done:])
	return out.String()
}

// mergeRanges sorts ranges and joins those that overlap.
func mergeRanges(all []Range) []Range {
	slices.SortFunc(all, func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To))
	})
	out := all[:0]
	for _, r := range all {
		if n := len(out); n > 0 && r.From < out[n-1].To {
			out[n-1].To = max(out[n-1].To, r.To)
		} else {
			out = append(out, r)
		}
	}
	return out
}
