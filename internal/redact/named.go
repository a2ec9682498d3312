package redact

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// secretWords are what secrets are called. schemeWords stand right before a secret, as in a header.
var (
	secretWords = []string{"password", "passwd", "passphrase", "pwd", "secret", "token", "api_key", "api-key", "apikey",
		"access_key", "private_key", "authorization", "credential"}
	schemeWords = []string{"bearer ", "basic "}
)

// harmlessSuffixes end a name that speaks of a secret without being one: token_type, secret_name, password_length.
var harmlessSuffixes = []string{"type", "name", "id", "ids", "count", "limit", "length", "usage", "url", "uri", "path",
	"file", "policy", "expiry", "expires", "expires_in", "expires_at", "budget", "ref", "kind", "version"}

// minNamed and maxNamed bound the length of a value that is masked because of the word before it.
const minNamed, maxNamed = 6, 4096

// findNamed finds values that follow a word such as password=, "token": or Authorization: Bearer.
func findNamed(text string) (found []Range) {
	if len(text) < len("pwd=")+minNamed {
		return nil
	}
	folded := lowerASCII(text)
	words := newWordScanner(folded)
	for at := 0; ; {
		i := words.next(at)
		if i < 0 {
			return found
		}
		from, to := namedValue(text, folded, i)
		if to <= from {
			at = i + 1
			continue
		}
		found, at = append(found, Range{From: from, To: to}), to
	}
}

// findNamedMember finds the secret in the value of a JSON member with a name such as db_password.
func findNamedMember(name, value string) []Range {
	if len(name) < len("pwd") || len(value) < minNamed || harmless(value) {
		return nil
	}
	folded := lowerASCII(name)
	words := newWordScanner(folded)
	for i := words.next(0); i >= 0; i = words.next(i + 1) {
		word, end, ok := nameAt(folded, i)
		if !ok || end < len(name) || name[i:] == "PWD" && strings.HasPrefix(value, "/") {
			continue
		}
		from := 0
		if word == "authorization" {
			from = schemeLen(lowerASCII(value))
		}
		return []Range{{From: from, To: len(value)}}
	}
	return nil
}

// wordScanner finds the words one after another. It remembers where each word comes next, so that a long text is read
// once for each word and not once for each match.
type wordScanner struct {
	text  string
	words []string
	at    []int // where each word comes next; -1 means nowhere
}

func newWordScanner(text string) *wordScanner {
	s := &wordScanner{text: text, words: slices.Concat(secretWords, schemeWords)}
	for _, w := range s.words {
		s.at = append(s.at, strings.Index(text, w))
	}
	return s
}

// next returns where the first word at or behind from stands, or -1.
func (s *wordScanner) next(from int) int {
	first := -1
	for n, w := range s.words {
		if i := s.at[n]; i >= 0 && i < from {
			if i = strings.Index(s.text[from:], w); i >= 0 {
				i += from
			}
			s.at[n] = i
		}
		if i := s.at[n]; i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	return first
}

// namedValue returns the place of the secret that belongs to the word at i; an empty one means that there is none.
func namedValue(text, folded string, i int) (from, to int) {
	for _, w := range schemeWords {
		if strings.HasPrefix(folded[i:], w) {
			from, to = i+len(w), wordEnd(text, i+len(w))
			return from, endIf(to-from >= 12 && !isPlainWord(text[from:to]) && !harmless(text[from:to]), from, to)
		}
	}
	word, nameEnd, ok := nameAt(folded, i)
	if !ok {
		return 0, 0
	}
	at := skipSpace(text, skipQuote(text, nameEnd))
	joint := byte(0) // the sign between name and value, if any
	switch {
	case at < len(text) && (text[at] == ':' || text[at] == '='):
		joint = text[at]
		if at++; at < len(text) && (text[at] == '=' || text[at] == '>') { // == or := or =>
			at++
		}
	case strings.HasPrefix(folded[at:], "is ") && at > nameEnd:
		at += len("is")
	default:
		return 0, 0
	}
	if text[i:nameEnd] == "PWD" && strings.HasPrefix(text[skipQuote(text, at):], "/") {
		return 0, 0 // the working directory of a shell
	}
	spaced := at < len(text) && text[at] == ' '
	at = skipSpace(text, at)
	if word == "authorization" {
		if q := skipQuote(text, at); schemeLen(folded[q:]) > 0 {
			at = q + schemeLen(folded[q:])
		}
	}
	return valueAt(text, at, word, joint, spaced)
}

// nameAt reads the rest of the name in which the word at i stands. ok is false if the name speaks of a secret without
// being the name of one.
func nameAt(folded string, i int) (word string, end int, ok bool) {
	for _, w := range secretWords {
		if strings.HasPrefix(folded[i:], w) {
			word = w
			break
		}
	}
	end = i + len(word)
	for end < len(folded) && end < i+40 && (isAlnum(folded[end]) || folded[end] == '_' || folded[end] == '-') {
		end++
	}
	rest := folded[i+len(word) : end]
	for _, s := range harmlessSuffixes {
		if strings.HasSuffix(rest, "_"+s) || strings.HasSuffix(rest, "-"+s) {
			return word, end, false
		}
	}
	return word, end, word != ""
}

// schemeLen returns the length of the scheme that an authorization begins with, or 0.
func schemeLen(folded string) int {
	for _, s := range []string{"bearer ", "basic ", "token ", "negotiate ", "digest "} {
		if strings.HasPrefix(folded, s) {
			return len(s)
		}
	}
	return 0
}

// valueAt bounds the value at i and judges it. A quoted value is taken whole; an unquoted one must not look like prose
// or code.
func valueAt(text string, i int, word string, joint byte, spaced bool) (from, to int) {
	if q := skipQuote(text, i); q > i {
		end := quoteEnd(text, q, text[i:q])
		return q, endIf(end-q >= minNamed && !harmless(text[q:end]), q, end)
	}
	to = wordEnd(text, i)
	v := text[i:to]
	called := to < len(text) && text[to] == '(' // a function
	prose := isPlainWord(v) && (joint == 0 || spaced && !strings.HasPrefix(word, "pass"))
	code := strings.Contains(v, ".") && isPlainWord(strings.ReplaceAll(v, ".", ""))
	return i, endIf(len(v) >= minNamed && len(v) <= maxNamed && !called && !prose && !code && !harmless(v), i, to)
}

// endIf returns the end of a value if it is a secret, else its beginning.
func endIf(secret bool, from, to int) int {
	if secret {
		return to
	}
	return from
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

// skipQuote steps over a quote, before which a JSON string has a backslash.
func skipQuote(s string, i int) int {
	j := i
	if j < len(s) && s[j] == '\\' {
		j++
	}
	if j < len(s) && (s[j] == '"' || s[j] == '\'' || s[j] == '`') {
		return j + 1
	}
	return i
}

// quoteEnd returns where the value ends that begins at i, behind a quote: at the next quote like it that is not
// escaped. A value without one was cut off.
func quoteEnd(s string, i int, quote string) int {
	stop := min(len(s), i+maxNamed)
	for stop < len(s) && !utf8.RuneStart(s[stop]) {
		stop--
	}
	slashes := 0
	for j := i; j < stop; j++ {
		if s[j] == '\\' {
			slashes++
			continue
		}
		if s[j] == quote[len(quote)-1] && slashes%(2*len(quote)) == len(quote)-1 {
			return j - len(quote) + 1
		}
		slashes = 0
	}
	return stop
}

func wordEnd(s string, i int) int {
	for i < len(s) && s[i] > ' ' && strings.IndexByte("\"'`\\,;&<>(){}[]", s[i]) < 0 {
		i++
	}
	return i
}

// isPlainWord reports whether a value is letters only, as words and identifiers are.
func isPlainWord(v string) bool {
	for i := range len(v) {
		letter := classes[v[i]]&(lower|upper) != 0
		if !letter && v[i] != '_' && v[i] != '-' && (i < len(v)-1 || strings.IndexByte(".:!?", v[i]) < 0) {
			return false
		}
	}
	return true
}

// harmless reports whether a value that stands where a secret is expected is none: a number, a reference to a
// variable, a blank, or a mark.
func harmless(v string) bool {
	reference := len(v) > 1 && v[0] == '$' && (v[1] == '{' || v[1] == '(' || v[1] >= 'A' && v[1] <= 'Z')
	return reference || strings.Trim(v, "0123456789.,-") == "" || strings.Trim(v, "*xX.-_<>") == "" ||
		strings.Contains(v, Mark) || v == "REDACTED"
}

// lowerASCII lowers ASCII letters only, so that every byte keeps its place.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c - 'A' + 'a'
		}
	}
	return string(b)
}
