package store

import (
	"strconv"
	"strings"
)

// The server shortens texts to 59 characters or more, or to their first line. So a quote has at least the first
// quoteStart bytes of a text, or its first line. A line of fewer than minFirstLine bytes may occur by chance.
const (
	quoteStart   = 56
	minFirstLine = 32
)

// quoteForm is a form in which a text is stored, such as within a JSON string.
type quoteForm struct {
	runes []string // each character of the text in this form
	start string   // the part of the text that each quote has, in this form
}

// textEncoding returns a text as it is stored in a place. The encoding of a text consists of those of its characters.
type textEncoding func(string) string

func inJSON(s string) string      { return trimQuotes(encodeJSON(s)) }
func inPlainJSON(s string) string { return trimQuotes(encodeJSONUnescaped(s)) }
func inGo(s string) string        { return trimQuotes(strconv.Quote(s)) }

// inLines returns the encoding of a text whose lines a preview prefixes.
func inLines(sign string) textEncoding {
	return func(s string) string { return strings.ReplaceAll(s, "\n", "\n"+sign+" ") }
}

// listEncodings returns the encodings of quotes: a text as it is, quoted, or in a preview, and each within JSON, which
// may be within JSON again.
func listEncodings() (list []textEncoding) {
	list = []textEncoding{strings.Clone, inGo, inLines("-"), inLines("+")}
	for range 2 {
		for _, e := range list {
			list = append(list, func(s string) string { return inJSON(e(s)) },
				func(s string) string { return inPlainJSON(e(s)) })
		}
	}
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
			f.start = strings.Join(f.runes, "")
		}
	}
	return f
}

// eraseForms replaces the quotes in a text. A quote is the start of a form with all characters that follow in it.
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
