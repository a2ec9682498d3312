package mail

import (
	"slices"
	"strings"
	"unicode"

	"reeve/internal/store"
)

const (
	mostTerms = 64  // of a query; the rest is ignored
	mostWord  = 200 // bytes of a word
)

// fields are the names that a query may put before a word.
var fields = map[string]store.MailField{"subject": store.SubjectField, "body": store.BodyField,
	"from": store.SenderField, "sender": store.SenderField,
	"to": store.ReceiverField, "cc": store.ReceiverField, "recipient": store.ReceiverField,
	"attachment": store.AttachedField}

// parse reads a query. Every text is one: what is not an operator where it stands is a word, and what is not a word is
// nothing.
//
//	budget review        both words, in any order
//	"budget review"      the words in a row
//	budget OR forecast   one of them; OR binds its two neighbours
//	-draft               not that word; NOT draft is the same
//	fore*                words that begin so; "budget fore*" ends with such a word
//	subject:budget       in the subject; also body:, from:, to:, attachment:, with a phrase too
func parse(s string) (q store.MailQuery) {
	terms, or := 0, false
	for _, t := range tokens(s) {
		if t.or {
			or = len(q.All) > 0
			continue
		}
		if terms++; terms > mostTerms {
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

// tokens cuts a query into terms. AND says nothing; NOT and - are heard only before a term, and OR only between two.
func tokens(s string) (out []token) {
	not := false
	for s != "" {
		s = strings.TrimLeftFunc(s, space)
		var raw string
		quoted := false
		var t token
		raw, s, quoted, t.Field = next(s)
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
				_, field, rest := prefixed(raw[1:])
				if field != store.AnyField {
					t.Field, raw = field, rest
					if rest == "" && strings.HasPrefix(s, `"`) { // -subject:"a b"
						raw, s = phrase(s)
						quoted = true
					}
				} else if raw == "-" && strings.HasPrefix(s, `"`) { // -"a b"
					raw, s = phrase(s)
					quoted = true
				}
			}
		}
		t.Words = words(raw)
		if len(t.Words) == 0 {
			continue
		}
		t.Prefix = starred(raw) || quoted && strings.HasPrefix(s, "*")
		t.not, not = not || minus, false
		out = append(out, t)
	}
	for len(out) > 0 && out[len(out)-1].or { // nothing follows it
		out = out[:len(out)-1]
	}
	return out
}

// next takes a word, or a phrase in quotes, with the field before it.
func next(s string) (raw, rest string, quoted bool, field store.MailField) {
	if strings.HasPrefix(s, `"`) {
		raw, rest = phrase(s)
		return raw, rest, true, store.AnyField
	}
	end := strings.IndexFunc(s, func(r rune) bool { return space(r) || r == '"' })
	if end < 0 {
		end = len(s)
	}
	name, field, after := prefixed(s[:end])
	if field == store.AnyField {
		return s[:end], s[end:], false, field
	}
	if after == "" && strings.HasPrefix(s[end:], `"`) {
		raw, rest = phrase(s[end:])
		return raw, rest, true, field
	}
	return s[len(name)+1 : end], s[end:], false, field
}

// prefixed cuts the name of a field off a word.
func prefixed(s string) (name string, field store.MailField, after string) {
	name, after, found := strings.Cut(s, ":")
	if !found {
		return "", store.AnyField, s
	}
	if f, ok := fields[strings.ToLower(name)]; ok {
		return name, f, after
	}
	return "", store.AnyField, s
}

// phrase takes what is in quotes. A quote that is never closed goes on to the end.
func phrase(s string) (raw, rest string) {
	raw, rest, _ = strings.Cut(s[1:], `"`)
	return raw, rest
}

// space is what separates words of a query besides quotes. Brackets group nothing here.
func space(r rune) bool {
	return unicode.IsSpace(r) || r == '(' || r == ')' || r == 0 || r == ',' || r == ';'
}

// starred tells whether a star stands behind the last word, among whatever other signs.
func starred(s string) bool {
	end := strings.LastIndexFunc(s, func(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.Co) })
	return end >= 0 && strings.Contains(s[end:], "*")
}

// words are the runs of letters and digits, which is what the indexes hold: jane@x.org is three in a row.
func words(s string) []string {
	list := strings.FieldsFunc(strings.ToValidUTF8(s, " "),
		func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co) })
	list = slices.DeleteFunc(list, func(w string) bool {
		return strings.IndexFunc(w, func(r rune) bool { return !unicode.Is(unicode.M, r) }) < 0
	})
	for i, w := range list {
		if len(w) > mostWord {
			list[i] = strings.ToValidUTF8(w[:mostWord], "")
		}
	}
	return list[:min(len(list), mostTerms)]
}
