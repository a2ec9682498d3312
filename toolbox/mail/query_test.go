package mail

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"reeve/internal/store"
)

// formatQuery formats a parsed query: & joins required terms, | joins alternatives, and ! precedes excluded terms.
func formatQuery(q store.MailQuery) string {
	term := func(t store.MailTerm) string {
		s := strings.Join(t.Words, " ")
		if t.Prefix {
			s += "*"
		}
		if t.Field != store.AnyField {
			s = string(t.Field) + ":" + s
		}
		return s
	}
	var all []string
	for _, any := range q.All {
		var some []string
		for _, t := range any {
			some = append(some, term(t))
		}
		all = append(all, strings.Join(some, "|"))
	}
	for _, t := range q.None {
		all = append(all, "!"+term(t))
	}
	return strings.Join(all, "&")
}

func TestQueries(t *testing.T) {
	for query, want := range map[string]string{
		"": "", "a b": "a&b", `"a b" c`: "a b&c", `"a b`: "a b", "a AND b": "a&b", "a and b": "a&and&b",
		"a OR b": "a|b", "a OR b c": "a|b&c", "a b OR c OR d e": "a&b|c|d&e",
		"OR a": "a", "a OR": "a", "OR": "", "a OR OR b": "a|b", "-a": "!a", "a -b": "a&!b", "a NOT b c": "a&c&!b",
		`a -"b c"`: "a&!b c", `NOT "b c"`: "!b c", "a-b": "a b", "a - b": "a&b", "fore*": "fore*", "*": "",
		"a*b":       "a b",
		"subject:a": "subject:a", "Subject:a b": "subject:a&b", `subject:"a b" c`: "subject:a b&c",
		"from:jane@x.org": "sender:jane x org", "-from:jane": "!sender:jane", `-subject:"a b" c`: "c&!subject:a b",
		"to:x":      "recipients:x",
		"nothing:a": "nothing a", "http://a.b": "http a b", "subject:": "", "subject: a": "a", "(a OR b) c": "a|b&c",
		"(a)(b)": "a&b", "a,b": "a&b", "don't": "don t", "\x00": "", "a\x00b": "a&b", "\xff": "", "😀": "", "é": "é",
		"attachment:x.pdf": "attached:x pdf", "body:x*": "body:x*",
	} {
		if got := formatQuery(parseQuery(query)); got != want {
			t.Errorf("%q is %q, want %q", query, got, want)
		}
	}
}

// FuzzQuery checks that the words of a parsed query contain only letters and digits, and that their number is limited.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{"", "a b", `"a b" -c OR d*`, "subject:x", "\x00\xff", strings.Repeat("(", 100),
		"é 日本 😀"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := parseQuery(s)
		terms := q.None
		for _, any := range q.All {
			if len(any) == 0 {
				t.Fatal("a group without alternatives")
			}
			terms = append(terms, any...)
		}
		if len(terms) > maxTerms {
			t.Fatalf("%d terms", len(terms))
		}
		for _, term := range terms {
			if len(term.Words) == 0 || len(term.Words) > maxTerms {
				t.Fatalf("%d words", len(term.Words))
			}
			for _, w := range term.Words {
				if w == "" || len(w) > maxWordBytes ||
					strings.ContainsFunc(w, func(r rune) bool {
						return !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co)
					}) {
					t.Fatalf("word %q", w)
				}
			}
		}
	})
}

func TestInboxesByAddress(t *testing.T) {
	var all []store.Inbox
	for i, name := range []string{"dasovich-j", "kaminski-v", "kaminski-a", "williams-w3", "lay-k", "jane.doe@x.org",
		"jane.doe@y.org", "info@x.org"} {
		all = append(all, store.Inbox{ID: int64(i), Name: name})
	}
	for who, want := range map[string]string{
		"dasovich-j": "dasovich-j", "DASOVICH-J@": "dasovich-j", "dasovich-j@enron.com": "dasovich-j",
		"jeff.dasovich@enron.com": "dasovich-j", "jeff.dasovich": "dasovich-j", "Jeff Dasovich": "dasovich-j",
		"dasovich": "dasovich-j",
		"Jeff Dasovich <jeff.dasovich@enron.com>": "dasovich-j", "jdasovich": "dasovich-j",
		"j.dasovich@enron.com": "dasovich-j", "jeff.d.dasovich@enron.com": "dasovich-j", "maria.dasovich": "",
		"jeff": "", "j": "",
		"vince.kaminski@enron.com": "kaminski-v", "kaminski": "kaminski-v kaminski-a",
		"jane.doe@x.org": "jane.doe@x.org", "jane.doe": "jane.doe@x.org jane.doe@y.org",
		"jane.doe@": "jane.doe@x.org jane.doe@y.org",
		"doe-j":     "jane.doe@x.org jane.doe@y.org", "doe-j@y.org": "jane.doe@y.org", "info": "info@x.org",
		"info@z.org": "", "": "", "@": "", "@x.org": "", "kenneth.lay@enron.com": "lay-k", "nobody": "", "layton-k": "",
	} {
		var got []string
		for _, i := range matchInboxes(all, who) {
			got = append(got, i.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q is %v, want %v", who, fmt.Sprint(got), want)
		}
	}
}
