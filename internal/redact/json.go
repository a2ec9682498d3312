package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// isJSON reports whether a text is a JSON object, array or string.
func isJSON(text string) bool {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	return trimmed != "" && strings.IndexByte(`{["`, trimmed[0]) >= 0 && json.Valid([]byte(text))
}

// document is a JSON text while it is redacted.
type document struct {
	*Redactor
	text      string
	fileNames []string // members from which only stored values are removed
	hasKey    bool     // it has a member kty, like a JSON Web Key
	spanning  []Range  // stored values in the source, which may be JSON and span several strings
	out       strings.Builder
	done      int // offset up to which text is processed
	member    string
	key       keyLines
}

// keyLines is the state of reading a private key whose lines are separate JSON strings.
type keyLines int

const (
	noKey keyLines = iota
	keyBegun
	inKey
)

// json redacts each string and each number of a JSON text.
func (r *Redactor) json(text string, fileNames []string) string {
	d := &document{Redactor: r, text: text, fileNames: fileNames, spanning: r.stored.find(text),
		hasKey: strings.Contains(text, `"kty"`)}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i = d.redactString(i)
		case c == '-' || isDigit(c):
			i = d.redactNumber(i)
		default:
			if c == '{' || c == '[' || c == ',' {
				d.member = ""
			}
			i++
		}
	}
	d.out.WriteString(text[d.done:])
	return d.out.String()
}

// replace writes a string instead of a value of the source.
func (d *document) replace(from, to int, content string) {
	d.out.WriteString(d.text[d.done:from])
	d.out.WriteString(`"` + jsonContent(content) + `"`)
	d.done = to
}

// redactString redacts the string at i and returns the offset of its end.
func (d *document) redactString(i int) int {
	end := i + 1
	for d.text[end] != '"' {
		if d.text[end] == '\\' {
			end++
		}
		end++
	}
	end++
	content := decodeJSONString(d.text[i+1 : end-1])
	isName := strings.HasPrefix(strings.TrimLeft(d.text[end:], " \t\r\n"), ":")
	var found []Range
	switch {
	case d.isSpanned(i+1, end-1):
		found = []Range{{From: 0, To: len(content)}}
	case isName:
		found = d.Find(content)
	case slices.Contains(d.fileNames, d.member):
		found = d.stored.findEncoded(content)
	default:
		found = d.findValue(content)
	}
	if len(found) > 0 {
		d.replace(i, end, Replace(content, found))
	}
	if d.member = ""; isName {
		d.member = content
	}
	return end
}

// findValue finds the secrets in the value of the current member or in an element of an array.
func (d *document) findValue(content string) []Range {
	found := d.Find(content)
	if d.formats {
		found = append(found, findMember(d.member, content, d.hasKey)...)
		found = append(found, d.key.find(content)...)
	}
	if d.named {
		found = append(found, findNamedMember(d.member, content)...)
	}
	return mergeRanges(found)
}

// find returns the range of a line of a private key, if content is one.
func (k *keyLines) find(content string) []Range {
	line := strings.TrimSpace(content)
	i := strings.LastIndex(line, pemBegin)
	switch {
	case i >= 0 && strings.HasSuffix(line, "PRIVATE KEY"+pemDashes):
		*k = keyBegun
	case *k == keyBegun && (line == "" || keyHeader.MatchString(line)):
	case *k != noKey && prefixLen(line, std64) == len(line) && (*k == inKey || len(line) >= minKeyRun):
		*k = inKey
		return []Range{{From: 0, To: len(content)}}
	default:
		*k = noKey
	}
	return nil
}

// redactNumber replaces a number that contains a stored value by a string. It returns the offset of the number's end.
func (d *document) redactNumber(i int) int {
	end := i
	for end < len(d.text) && strings.IndexByte("+-.eE0123456789", d.text[end]) >= 0 {
		end++
	}
	if len(d.stored.find(d.text[i:end])) > 0 || d.isSpanned(i, end) {
		d.replace(i, end, Mark)
	}
	d.member = ""
	return end
}

// isSpanned reports whether a stored value that spans several strings or numbers covers a part of this one.
func (d *document) isSpanned(from, to int) bool {
	for len(d.spanning) > 0 && d.spanning[0].To <= from {
		d.spanning = d.spanning[1:]
	}
	if len(d.spanning) == 0 {
		return false
	}
	r := d.spanning[0]
	return r.From < to && r.To > from && (r.From < from || r.To > to)
}

// jsonContent encodes a string as JSON, without the quotes.
func jsonContent(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil { // a string can always be encoded
		return Mark
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

// decodeJSONString decodes a valid JSON string, given without its quotes.
func decodeJSONString(s string) string {
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
		plain, n := backslashEscape(s[i:])
		if n == 0 { // half of a surrogate pair
			plain, n = "\uFFFD", len(`\u0000`)
		}
		out.WriteString(s[:i])
		out.WriteString(plain)
		s = s[i+n:]
	}
}
