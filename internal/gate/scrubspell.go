package gate

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
)

// spellings are the ways in which a value is likely to come back: as it is, in an address, in HTML, in hexadecimal or base64, and in JSON as different programs write
// it; and each of the texts among them once more within the JSON that a tool's result is.
func spellings(v string) []string {
	texts := []string{v, html.EscapeString(v), strings.ReplaceAll(html.EscapeString(v), "&#34;", "&quot;")}
	for _, s := range [...]string{inJSON(v), htmlJSON(v), asciiJSON(inJSON(v))} {
		texts = append(texts, s, strings.ReplaceAll(s, "/", `\/`), escape.ReplaceAllStringFunc(s, upperHex))
	}
	all := texts
	for _, s := range texts {
		all = append(all, inJSON(s))
	}
	component := strings.ReplaceAll(url.QueryEscape(v), "+", "%20")
	for _, s := range [...]string{url.QueryEscape(v), url.PathEscape(v), component, strings.ReplaceAll(component, "%2F", "/")} {
		all = append(all, s, percent.ReplaceAllStringFunc(s, strings.ToLower))
	}
	all = append(all, hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))))
	return append(all, inBase64(v)...)
}

// inJSON is a value as it stands between the quotes of a JSON string, as we write it.
func inJSON(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return s
	}
	return between(b.String())
}

// htmlJSON is inJSON by a writer that escapes what matters inside HTML.
func htmlJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return between(string(b))
}

// between takes the quotes off.
func between(quoted string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(quoted, "\n"), `"`), `"`)
}

// asciiJSON escapes all that is not ASCII.
func asciiJSON(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

var (
	escape  = regexp.MustCompile(`\\u[0-9a-f]{4}`)
	percent = regexp.MustCompile(`%[0-9A-F]{2}`)
)

func upperHex(s string) string { return s[:2] + strings.ToUpper(s[2:]) }

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
