package main

import (
	"strings"
	"unicode"
)

// snakeCase converts a Go name to snake_case: userID to user_id, HTTPServer to http_server, userIDs to user_ids.
func snakeCase(name string) string {
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

// camelCase converts a snake_case word to an exported Go name.
func camelCase(word string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(word, "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// isArgumentName reports whether the APIs of all models accept a word as the name of an argument.
func isArgumentName(word string) bool {
	for i, c := range word {
		if !('a' <= c && c <= 'z' || i > 0 && (c == '_' || '0' <= c && c <= '9')) {
			return false
		}
	}
	return word != "" && len(word) <= 64
}

// names is the set of names that are used in a scope.
type names map[string]bool

// pick returns want, with underscores added until it is unused, and adds it to the set.
func (n names) pick(want string) string {
	for n[want] {
		want += "_"
	}
	n[want] = true
	return want
}
