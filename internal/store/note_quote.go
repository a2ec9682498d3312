package store

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The server shortens texts to 59 characters or more, or to their first line. So a quote has at least the first
// quoteStart bytes of a text, or its first line. A line of fewer than minFirstLine bytes may occur by chance.
const (
	quoteStart   = 56
	minFirstLine = 32
)

// quoteForm is a form in which a text is stored, such as within a JSON string.
type quoteForm struct {
	runes      []string // each character of the text in this form
	start      string   // the part of the text that each quote has, in this form
	plainStart string   // the same part, as the text has it
}

// textEncoding returns a text as it is stored in a place. The encoding of a text consists of those of its characters.
type textEncoding func(string) string

func inJSON(s string) string      { return trimQuotes(encodeJSON(s)) }
func inPlainJSON(s string) string { return trimQuotes(encodeJSONUnescaped(s)) }
func inGo(s string) string        { return trimQuotes(strconv.Quote(s)) }

// inASCII escapes all characters outside ASCII, as many JSON encoders do.
func inASCII(s string) string { return escapeUnicode(inPlainJSON(s), `\u%04x`) }

// inUpperASCII is inASCII with capital digits.
func inUpperASCII(s string) string { return escapeUnicode(inPlainJSON(s), `\u%04X`) }

// inSlashed escapes slashes too.
func inSlashed(s string) string { return strings.ReplaceAll(inASCII(s), "/", `\/`) }

func escapeUnicode(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, format, unit)
		}
	}
	return b.String()
}

// inLines returns the encoding of a text whose lines a preview prefixes.
func inLines(sign string) textEncoding {
	return func(s string) string { return strings.ReplaceAll(s, "\n", "\n"+sign+" ") }
}

// listEncodings returns the encodings of quotes: a text as it is, quoted, or in a preview, and each within JSON, which
// may be within JSON again.
func listEncodings() (list []textEncoding) {
	list = []textEncoding{strings.Clone, inGo, inLines("-"), inLines("+")}
	within := func(encoders ...textEncoding) {
		for _, e := range list {
			for _, encode := range encoders {
				list = append(list, func(s string) string { return encode(e(s)) })
			}
		}
	}
	within(inJSON, inPlainJSON, inASCII, inUpperASCII, inSlashed)
	within(inJSON, inPlainJSON)
	return list
}

// quotedForms returns the forms in which texts may be stored. It leaves out texts that are shorter than MinQuote.
func quotedForms(texts []string) (forms []quoteForm) {
	seen := map[string]bool{}
	encodings := listEncodings()
	for _, text := range texts {
		if len(text) < MinQuote {
			continue
		}
		for _, encode := range encodings {
			if whole := encode(text); !seen[whole] {
				seen[whole] = true
				forms = append(forms, newQuoteForm(text, encode))
			}
		}
	}
	return forms
}

func newQuoteForm(text string, encode textEncoding) quoteForm {
	f, end := quoteForm{}, quoteStart
	if line := strings.IndexByte(text, '\n'); line >= minFirstLine {
		end = min(end, line)
	}
	for i, r := range text {
		f.runes = append(f.runes, encode(string(r)))
		if i+len(string(r)) <= end {
			f.start, f.plainStart = strings.Join(f.runes, ""), text[:i+len(string(r))]
		}
	}
	return f
}

// plainText matches characters that every encoding leaves as they are.
var plainText = regexp.MustCompile(`[A-Za-z0-9 _.,:;!?()-]+`)

// minAnchor is the length in bytes of an anchor.
const minAnchor = 8

// findAnchors returns texts of which every quote contains one. A text that has a part which every encoding leaves as it
// is has that part as its anchor. Otherwise all starts of its forms are anchors.
func findAnchors(forms []quoteForm) (anchors []string) {
	for _, f := range forms {
		anchor := ""
		for _, part := range plainText.FindAllString(f.plainStart, -1) {
			if len(part) > len(anchor) {
				anchor = part
			}
		}
		if len(anchor) < minAnchor {
			anchor = f.start
		}
		if !slices.Contains(anchors, anchor) {
			anchors = append(anchors, anchor)
		}
	}
	return anchors
}

// structuredColumns have JSON in a format of the server. The values of structuralKeys in it are names, and quote no
// note, unless they are part of the arguments of a call.
var structuredColumns = []string{"answer", "body", "metadata", "request", "result_info", "talk", "undo"}

var structuralKeys = []string{"class", "code", "effect", "hash", "id", "kind", "media_type", "model", "origin",
	"provider", "role", "session", "state", "status", "step", "stop", "tool", "type", "user", "verdict", "via"}

func isStructural(key string, keys []string) bool {
	return slices.Contains(structuralKeys, key) && !slices.Contains(keys, "args")
}

// eraseQuotes replaces the quotes in a text. In JSON it changes only strings that are values, so that the text remains
// JSON with the same structure. If isStructured is true, the JSON is in a format of the server.
func eraseQuotes(text string, forms []quoteForm, isStructured bool) string {
	t := strings.TrimSpace(text)
	if t == "" || !strings.Contains(`{["`, t[:1]) || !json.Valid([]byte(text)) {
		return eraseForms(text, forms)
	}
	var b strings.Builder
	key, keys := "", []string{} // the key of the current value, and those of the values around it
	for i := 0; i < len(text); {
		switch text[i] {
		case '{', '[':
			keys = append(keys, key)
		case '}', ']':
			key, keys = keys[len(keys)-1], keys[:len(keys)-1]
		case '"':
			literal := jsonString(text[i:])
			i += len(literal)
			var value string
			_ = json.Unmarshal([]byte(literal), &value) // the text is valid JSON
			switch {
			case strings.HasPrefix(strings.TrimLeft(text[i:], " \t\r\n"), ":"):
				key = value
			case !isStructured || !isStructural(key, keys):
				if erased := eraseQuotes(value, forms, false); erased != value {
					literal = encodeJSONUnescaped(erased)
				}
			}
			b.WriteString(literal)
			continue
		}
		b.WriteByte(text[i])
		i++
	}
	return b.String()
}

// jsonString returns the string literal at the start of a JSON text.
func jsonString(text string) string {
	for i := 1; ; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i+1]
		}
	}
}

// eraseForms replaces the quotes in a text that is not JSON. A quote is the start of a form with all characters that
// follow in it.
func eraseForms(text string, forms []quoteForm) string {
	var b strings.Builder
	for {
		at := -1
		for _, f := range forms {
			if i := strings.Index(text, f.start); i >= 0 && (at < 0 || i < at) {
				at = i
			}
		}
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		quoted := 0
		for _, f := range forms {
			if strings.HasPrefix(text[at:], f.start) {
				quoted = max(quoted, f.match(text[at:]))
			}
		}
		b.WriteString(text[:at] + forgottenText)
		text = text[at+quoted:]
	}
}

// match returns how many bytes at the start of a text are those of the form.
func (f quoteForm) match(text string) (n int) {
	for _, r := range f.runes {
		if !strings.HasPrefix(text[n:], r) {
			break
		}
		n += len(r)
	}
	return n
}

func trimQuotes(s string) string { return s[1 : len(s)-1] }
