package main

import (
	"strings"
	"unicode"
)

// snake turns a Go name into snake_case: userID is user_id, HTTPServer is http_server, userIDs is user_ids.
func snake(name string) string {
	r := []rune(strings.Trim(name, "_"))
	at := func(i int) rune {
		if i < 0 || i >= len(r) {
			return '_'
		}
		return r[i]
	}
	var b strings.Builder
	for i, c := range r {
		if unicode.IsUpper(c) && at(i-1) != '_' {
			plural := at(i+1) == 's' && !unicode.IsLower(at(i+2)) && !unicode.IsDigit(at(i+2))
			endsAcronym := unicode.IsUpper(at(i-1)) && unicode.IsLower(at(i+1)) && !plural
			if !unicode.IsUpper(at(i-1)) || endsAcronym {
				b.WriteByte('_')
			}
		}
		if c != '_' || at(i-1) != '_' {
			b.WriteRune(unicode.ToLower(c))
		}
	}
	return b.String()
}

// camel turns a snake_case word into the Go name of an exported thing.
func camel(word string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(word, "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// argumentName tells whether every model's API accepts a word as the name of an argument.
func argumentName(word string) bool {
	for i, c := range word {
		if !('a' <= c && c <= 'z' || i > 0 && (c == '_' || '0' <= c && c <= '9')) {
			return false
		}
	}
	return word != "" && len(word) <= 64
}

// names hands out names that nothing else in a scope has.
type names map[string]bool

func (n names) pick(want string) string {
	for n[want] {
		want += "_"
	}
	n[want] = true
	return want
}
