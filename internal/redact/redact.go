// Package redact removes secrets from text. It recognises stored values in the encodings they come back in, keys of
// well-known formats, and the secrets that protocols mark: private keys in PEM, passwords in URLs, Authorization
// headers and AWS secret keys beside their name. It never guesses by randomness, so ids, hashes, page tokens,
// certificates and lock files pass unchanged.
package redact

import (
	"cmp"
	"slices"
	"strings"
)

// Mark replaces a secret in redacted text.
const Mark = "[REDACTED]"

// Window is how many bytes on either side of a part of a text Slice and Head need to see. A secret of half that
// length is recognised wherever the part begins or ends.
const Window = 8 << 10

// Range is a part of a text, in bytes.
type Range struct{ From, To int }

// Redactor finds and removes secrets. It is immutable and safe for concurrent use. A nil Redactor finds nothing.
type Redactor struct {
	stored  *matcher
	formats bool // also find known formats and what protocols mark
	jwt     bool // remove the signatures of JSON Web Tokens
	named   bool // also find values after words such as "password="
}

// New returns a Redactor that removes the given values, keys of well-known formats and what protocols mark as secret.
// It ignores values shorter than MinStored.
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

// PassTokens returns a Redactor like r that leaves JSON Web Tokens whole.
func (r *Redactor) PassTokens() *Redactor {
	if r == nil {
		return nil
	}
	c := *r
	c.jwt = false
	return &c
}

// MaskNamed returns a Redactor like r that also masks values after words such as "password=". It suits the output of
// commands and logs; in data that programs pass on it would mask too much.
func (r *Redactor) MaskNamed() *Redactor {
	if r == nil {
		return nil
	}
	c := *r
	c.named = true
	return &c
}

// Find returns the places of secrets in text, in order and without overlap.
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
	}
	if r.named {
		found = append(found, findNamed(text)...)
	}
	return merge(found)
}

// Text returns text without its secrets. A text that is JSON stays valid JSON: it is redacted string by string, and
// what holds no secret keeps its bytes. Of the members of JSON objects called one of fileNames only stored values are
// removed: a file must be found under its name, whatever that looks like.
func (r *Redactor) Text(text string, fileNames ...string) string {
	if r == nil {
		return text
	}
	if isJSON(text) {
		return r.json(text, fileNames)
	}
	return Replace(text, r.Find(text))
}

// Open returns where a secret begins that a text breaks off in: a stored value from its fourth byte on, a key of a
// known format, or a private key. It returns len(text) if there is none.
func (r *Redactor) Open(text string) int {
	if r == nil {
		return len(text)
	}
	far := max(0, len(text)-Window)
	at := far + r.stored.open(text[far:])
	if r.formats {
		at = min(at, far+openFormat(text[far:]), openPrivateKey(text))
	}
	return at
}

// Replace puts Mark in the place of each range of text. The ranges are in order and do not overlap.
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

// merge sorts ranges and joins those that overlap.
func merge(all []Range) []Range {
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
