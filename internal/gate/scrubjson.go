package gate

import (
	"encoding/json"
	"slices"
	"strings"

	"reeve"
)

// isJSON tells whether a text is an object, an array or a string of JSON.
func isJSON(text string) bool {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	return trimmed != "" && strings.IndexByte(`{["`, trimmed[0]) >= 0 && json.Valid([]byte(text))
}

// document is a JSON text that is being scrubbed, string by string and number by number, so that it stays one. What holds no secret stays as it is, byte for byte.
type document struct {
	*scrubber
	text   string
	names  []string      // members that name files
	across []reeve.Range // where known values stand in the text itself: one may be JSON in its turn, and reach over several strings
	out    strings.Builder
	done   int
	name   string // of the member whose value comes next
	open   bool   // a private key that began in one string goes on in the next
	ends   int    // where the last private key, or the like, ends
}

func (s *scrubber) scrubJSON(text string, names []string) string {
	d := &document{scrubber: s, text: text, names: names, across: s.known.in(text), ends: strings.LastIndex(text, pemEnd)}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i = d.quoted(i)
		case c == '-' || isDigit(c):
			i = d.number(i)
		default:
			if c == '{' || c == '[' || c == ',' {
				d.name = ""
			}
			i++
		}
	}
	d.out.WriteString(text[d.done:])
	return d.out.String()
}

func (d *document) put(from, to int, value string) {
	d.out.WriteString(d.text[d.done:from])
	d.out.WriteString(`"` + value + `"`)
	d.done = to
}

// quoted scrubs the string at i and gives where it ends.
func (d *document) quoted(i int) int {
	end := i + 1
	for d.text[end] != '"' {
		if d.text[end] == '\\' {
			end++
		}
		end++
	}
	end++
	said := fromJSON(d.text[i+1 : end-1])
	name := strings.HasPrefix(strings.TrimLeft(d.text[end:], " \t\r\n"), ":")
	found := d.known.spelt(said)
	switch {
	case name:
		found = d.find(said)
	case !slices.Contains(d.names, d.name):
		found = union(d.find(said), valueUnder(d.name, said), d.goesOn(said, end))
	}
	if d.reached(i+1, end-1) {
		found = []reeve.Range{{From: 0, To: len(said)}}
	}
	if len(found) > 0 {
		d.put(i, end, inJSON(reeve.Redact(said, found)))
	}
	if d.name = ""; name {
		d.name = said
	}
	return end
}

// number takes a number out that is, or holds, a known value. A mark cannot be one, and is a string.
func (d *document) number(i int) int {
	end := i
	for end < len(d.text) && strings.IndexByte("+-.eE0123456789", d.text[end]) >= 0 {
		end++
	}
	if len(d.known.in(d.text[i:end])) > 0 || d.reached(i, end) {
		d.put(i, end, redacted)
	}
	d.name = ""
	return end
}

// reached tells whether a known value that stands in several strings or numbers takes in something of this one.
func (d *document) reached(from, to int) bool {
	for len(d.across) > 0 && d.across[0].To <= from {
		d.across = d.across[1:]
	}
	if len(d.across) == 0 {
		return false
	}
	r := d.across[0]
	return r.From < to && r.To > from && (r.From < from || r.To > to)
}

// goesOn finds the rest of a private key whose lines are strings of their own.
func (d *document) goesOn(said string, end int) []reeve.Range {
	if d.open {
		d.open = !strings.Contains(said, pemEnd)
		return []reeve.Range{{From: 0, To: len(said)}}
	}
	if i := strings.LastIndex(said, "PRIVATE KEY-----"); i >= 0 && strings.Contains(said[:i], pemBegin) && !strings.Contains(said[i:], pemEnd) {
		d.open = d.ends >= end
	}
	return nil
}
