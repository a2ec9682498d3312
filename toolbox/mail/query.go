package mail

import (
	"slices"
	"strings"
	"unicode"

	"reeve/internal/store"
)

const (
	maxTerms     = 64  // terms of a query; the rest is ignored
	maxWordBytes = 200 // bytes of a word
)

// fieldPrefixes are the field names that a query may put before a word.
var fieldPrefixes = map[string]store.MailField{"subject": store.SubjectField, "body": store.BodyField,
	"from": store.SenderField, "sender": store.SenderField,
	"to": store.ReceiverField, "cc": store.ReceiverField, "recipient": store.ReceiverField,
	"attachment": store.AttachedField}

// parseQuery parses a query. Every text is valid: text that is not an operator in its place is a word, and signs are
// ignored.
//
//	budget review        both words, in any order
//	"budget review"      the words in this order, next to each other
//	budget OR forecast   one of the words; OR joins its two neighbours
//	-draft               not this word; the same as NOT draft
//	fore*                words with this prefix; also at the end of a phrase, "budget fore*"
//	subject:budget       in the subject; also body:, from:, to:, attachment:, and with a phrase
func parseQuery(s string) (q store.MailQuery) {
	terms, or := 0, false
	for _, t := range splitTerms(s) {
		if t.or {
			or = len(q.All) > 0
			continue
		}
		if terms++; terms > maxTerms {
			break
		}
		switch {
		case t.not:
			q.None = append(q.None, t.MailTerm)
		case or:
			last := len(q.All) - 1
			q.All[last] = append(q.All[last], t.MailTerm)
		default:
			q.All = append(q.All, []store.MailTerm{t.MailTerm})
		}
		or = false
	}
	return q
}

// token is a term, or the word OR between two.
type token struct {
	store.MailTerm
	not, or bool
}

// splitTerms splits a query into terms. AND is ignored. NOT and - count only before a term, and OR only between two
// terms.
func splitTerms(s string) (out []token) {
	not := false
	for s != "" {
		s = strings.TrimLeftFunc(s, isSeparator)
		var raw string
		quoted := false
		var t token
		raw, s, quoted, t.Field = nextTerm(s)
		minus := strings.HasPrefix(raw, "-") && !quoted
		if !quoted {
			switch raw {
			case "AND", "&", "&&":
				continue
			case "OR", "|", "||":
				if n := len(out); n > 0 && !out[n-1].or {
					out = append(out, token{or: true})
				}
				continue
			case "NOT":
				not = true
				continue
			}
			if minus && t.Field == store.AnyField { // -from:jane
				_, field, rest := cutField(raw[1:])
				if field != store.AnyField {
					t.Field, raw = field, rest
					if rest == "" && strings.HasPrefix(s, `"`) { // -subject:"a b"
						raw, s = cutPhrase(s)
						quoted = true
					}
				} else if raw == "-" && strings.HasPrefix(s, `"`) { // -"a b"
					raw, s = cutPhrase(s)
					quoted = true
				}
			}
		}
		t.Words = splitWords(raw)
		if len(t.Words) == 0 {
			continue
		}
		t.Prefix = hasTrailingStar(raw) || quoted && strings.HasPrefix(s, "*")
		t.not, not = not || minus, false
		out = append(out, t)
	}
	for len(out) > 0 && out[len(out)-1].or { // nothing follows it
		out = out[:len(out)-1]
	}
	return out
}

// nextTerm returns the next word or quoted phrase with the field before it, and the rest of the query.
func nextTerm(s string) (raw, rest string, quoted bool, field store.MailField) {
	if strings.HasPrefix(s, `"`) {
		raw, rest = cutPhrase(s)
		return raw, rest, true, store.AnyField
	}
	end := strings.IndexFunc(s, func(r rune) bool { return isSeparator(r) || r == '"' })
	if end < 0 {
		end = len(s)
	}
	name, field, after := cutField(s[:end])
	if field == store.AnyField {
		return s[:end], s[end:], false, field
	}
	if after == "" && strings.HasPrefix(s[end:], `"`) {
		raw, rest = cutPhrase(s[end:])
		return raw, rest, true, field
	}
	return s[len(name)+1 : end], s[end:], false, field
}

// cutField cuts the name of a field off a word.
func cutField(s string) (name string, field store.MailField, after string) {
	name, after, found := strings.Cut(s, ":")
	if !found {
		return "", store.AnyField, s
	}
	if f, ok := fieldPrefixes[strings.ToLower(name)]; ok {
		return name, f, after
	}
	return "", store.AnyField, s
}

// cutPhrase returns the text in quotes and the rest. An unclosed quote extends to the end.
func cutPhrase(s string) (raw, rest string) {
	raw, rest, _ = strings.Cut(s[1:], `"`)
	return raw, rest
}

// isSeparator reports whether r separates the words of a query. Brackets do not group.
func isSeparator(r rune) bool {
	return unicode.IsSpace(r) || r == '(' || r == ')' || r == 0 || r == ',' || r == ';'
}

// hasTrailingStar reports whether a star follows the last word of s.
func hasTrailingStar(s string) bool {
	end := strings.LastIndexFunc(s, func(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.Co) })
	return end >= 0 && strings.Contains(s[end:], "*")
}

// splitWords returns the runs of letters and digits, which is what the indexes contain. jane@x.org is three words.
func splitWords(s string) []string {
	list := strings.FieldsFunc(strings.ToValidUTF8(s, " "),
		func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co) })
	list = slices.DeleteFunc(list, func(w string) bool {
		return strings.IndexFunc(w, func(r rune) bool { return !unicode.Is(unicode.M, r) }) < 0
	})
	for i, w := range list {
		if len(w) > maxWordBytes {
			list[i] = strings.ToValidUTF8(w[:maxWordBytes], "")
		}
	}
	return list[:min(len(list), maxTerms)]
}
