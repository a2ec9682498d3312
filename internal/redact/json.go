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
	fileNames []string // members of which only stored values are removed
	spanning  []Range  // stored values in the source: one may be JSON itself and reach over several strings
	out       strings.Builder
	done      int // how much of text is written or dropped
	member    string
	key       keyLines
}

// keyLines is how far a private key is read whose lines are strings of their own.
type keyLines int

const (
	noKey keyLines = iota
	keyBegun
	inKey
)

// json redacts a JSON text string by string and number by number.
func (r *Redactor) json(text string, fileNames []string) string {
	d := &document{Redactor: r, text: text, fileNames: fileNames, spanning: r.stored.find(text)}
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

// replace writes a string in the place of a value of the source.
func (d *document) replace(from, to int, content string) {
	d.out.WriteString(d.text[d.done:from])
	d.out.WriteString(`"` + jsonContent(content) + `"`)
	d.done = to
}

// redactString redacts the string at i and returns where it ends.
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
	case d.spans(i+1, end-1):
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

// findValue finds the secrets in a string that is the value of the current member, or an element of an array.
func (d *document) findValue(content string) []Range {
	found := d.Find(content)
	if d.formats {
		found = append(found, findMember(d.member, content)...)
		found = append(found, d.key.find(content)...)
	}
	if d.named {
		found = append(found, findNamedMember(d.member, content)...)
	}
	return merge(found)
}

// find finds the lines of a private key that are strings of their own.
func (k *keyLines) find(content string) []Range {
	line := strings.TrimSpace(content)
	i := strings.LastIndex(line, pemBegin)
	switch {
	case i >= 0 && strings.HasSuffix(line, "PRIVATE KEY"+pemDashes):
		*k = keyBegun
	case *k == keyBegun && (line == "" || keyHeader.MatchString(line)):
	case *k != noKey && run(line, std64) == len(line) && (*k == inKey || len(line) >= minKeyRun):
		*k = inKey
		return []Range{{From: 0, To: len(content)}}
	default:
		*k = noKey
	}
	return nil
}

// redactNumber replaces a number that holds a stored value by a string, and returns where the number ends.
func (d *document) redactNumber(i int) int {
	end := i
	for end < len(d.text) && strings.IndexByte("+-.eE0123456789", d.text[end]) >= 0 {
		end++
	}
	if len(d.stored.find(d.text[i:end])) > 0 || d.spans(i, end) {
		d.replace(i, end, Mark)
	}
	d.member = ""
	return end
}

// spans reports whether a stored value that reaches over several strings or numbers takes in a part of this one.
func (d *document) spans(from, to int) bool {
	for len(d.spanning) > 0 && d.spanning[0].To <= from {
		d.spanning = d.spanning[1:]
	}
	if len(d.spanning) == 0 {
		return false
	}
	r := d.spanning[0]
	return r.From < to && r.To > from && (r.From < from || r.To > to)
}

// jsonContent returns a string as it stands between the quotes of a JSON string.
func jsonContent(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil { // a string can always be encoded
		return Mark
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

// decodeJSONString decodes what stands between the quotes of a valid JSON string.
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
