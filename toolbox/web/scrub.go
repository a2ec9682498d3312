package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// scrubber takes the secrets of one call out of what comes back.
type scrubber struct {
	values map[string]string // name to secret
	names  []string          // longest secret first, so that one inside another does not break it up
}

func newScrubber(secrets map[string]string) scrubber {
	s := scrubber{values: secrets, names: sortedKeys(secrets)}
	slices.SortStableFunc(s.names, func(a, b string) int { return len(secrets[b]) - len(secrets[a]) })
	return s
}

// text takes secrets out of text, also where a server escaped some of their characters for JSON, a URL or HTML.
func (s scrubber) text(t string) string { return s.scrub(t, false) }

// cut takes secrets out of text that was cut off, also one of which only the beginning is left.
func (s scrubber) cut(t string) string { return s.scrub(t, true) }

func (s scrubber) scrub(t string, cut bool) string {
	for _, name := range s.names {
		mark := "[secret " + name + "]"
		t = replace(strings.ReplaceAll(t, s.values[name], mark), s.values[name], mark, cut)
	}
	return t
}

// replace puts mark in the place of each occurrence of secret, its characters escaped or not. With cut, an occurrence that
// the end of the text breaks off goes too.
func replace(t, secret, mark string, cut bool) string {
	forms := map[byte][]string{}
	for i := range len(secret) {
		if c := secret[i]; forms[c] == nil {
			forms[c] = escapes(c)
		}
	}
	var out strings.Builder
	kept := 0
	for i := 0; i < len(t); i++ {
		n, whole := match(t[i:], secret, forms)
		switch {
		case whole:
			out.WriteString(t[kept:i] + mark)
			i += n - 1
			kept = i + 1
		case cut && n > 0:
			return out.String() + t[kept:i]
		}
	}
	return out.String() + t[kept:]
}

// match tells how many bytes of t the secret takes up at its beginning, and whether that is the whole secret. Without a match
// it gives 0; if t ends inside one, the rest of t.
func match(t, secret string, forms map[byte][]string) (n int, whole bool) {
	for i := range len(secret) {
		if n == len(t) {
			return n, false
		}
		took, short := 0, false
		for _, f := range forms[secret[i]] {
			rest := t[n:]
			if len(rest) >= len(f) && strings.EqualFold(rest[:len(f)], f) && (len(f) > 2 || rest[:len(f)] == f) {
				took = len(f)
				break
			}
			short = short || len(rest) < len(f) && strings.EqualFold(f[:len(rest)], rest)
		}
		switch {
		case took > 0:
			n += took
		case short:
			return len(t), false
		default:
			return 0, false
		}
	}
	return n, true
}

// escapes gives the ways a character is written, the character itself last. Those of more than two bytes do not mind case.
func escapes(c byte) []string {
	forms := []string{fmt.Sprintf("\\u%04x", c), fmt.Sprintf("%%%02x", c), fmt.Sprintf("&#x%x;", c), fmt.Sprintf("&#%d;", c)}
	if name, ok := map[byte]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '"': "&quot;", '\'': "&apos;"}[c]; ok {
		forms = append(forms, name)
	}
	if c == ' ' {
		forms = append(forms, "+")
	}
	return append(forms, "\\"+string(rune(c)), string(rune(c)))
}

// json takes secrets out of a JSON text, however it escapes its strings. A text without any stays as it is, byte for byte.
func (s scrubber) json(doc []byte) []byte {
	if len(s.names) == 0 {
		return doc
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return []byte(s.text(string(doc)))
	}
	found := false
	v = s.walk(v, &found)
	if !found {
		return doc
	}
	out, err := marshal(v)
	if err != nil {
		return []byte("null") // a decoded value can always be written
	}
	return out
}

func (s scrubber) walk(v any, found *bool) any {
	clean := func(t string) string {
		c := s.text(t)
		*found = *found || c != t
		return c
	}
	switch t := v.(type) {
	case string:
		return clean(t)
	case json.Number:
		if c := clean(string(t)); c != string(t) {
			return c // a string now, but the number is not ours to show
		}
	case []any:
		for i := range t {
			t[i] = s.walk(t[i], found)
		}
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			out[clean(k)] = s.walk(e, found)
		}
		return out
	}
	return v
}

// marshal writes JSON without the escapes that only matter inside HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
