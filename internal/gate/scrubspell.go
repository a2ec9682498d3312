package gate

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// spellings are the ways in which a value is likely to come back, but for characters that are escaped, which are looked behind: as it is, with the spaces of a form, in
// hexadecimal, and in base64. A value that reads like something escaped comes back as what it seems to say where it is looked behind.
func spellings(v string) []string {
	all := append(inBase64(v), v, hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))))
	if strings.Contains(v, " ") {
		all = append(all, strings.ReplaceAll(v, " ", "+"))
	}
	for _, s := range slices.Clone(all) {
		for range layers {
			said, escapes := unescape(s)
			if len(escapes) == 0 {
				break
			}
			s, all = said, append(all, said)
		}
	}
	return all
}

// inJSON is a value as it stands between the quotes of a JSON string, as we write it.
func inJSON(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return s
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

// fromJSON is what stands between the quotes of a JSON string that is valid.
func fromJSON(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			out.WriteString(s)
			return out.String()
		}
		said, n := backslash(s[i:])
		if n == 0 { // half of a character, which is none
			said, n = "\uFFFD", len(`\u0000`)
		}
		out.WriteString(s[:i])
		out.WriteString(said)
		s = s[i+n:]
	}
}

// inBase64 is a value in base64: alone, and what can be told of it where something else stands before it, such as a name in Basic authentication. Of a short one
// that could be any text, and is left.
func inBase64(v string) []string {
	all := []string{base64.StdEncoding.EncodeToString([]byte(v)), base64.URLEncoding.EncodeToString([]byte(v))}
	for before := range 3 {
		whole := 8 * (before + len(v)) / 6 // characters that do not depend on what follows
		first := (8*before + 5) / 6        // nor on what stands before
		for _, enc := range [...]*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if s := enc.EncodeToString(append(make([]byte, before), v...))[first:whole]; len(s) >= 8 {
				all = append(all, s)
			}
		}
	}
	return all
}
