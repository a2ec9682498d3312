package redact

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// secretWords occur in the names of secrets. schemeWords directly precede a secret, as in a header.
var (
	secretWords = []string{"password", "passwd", "passphrase", "pwd", "secret", "token", "api_key", "api-key", "apikey",
		"access_key", "private_key", "authorization", "credential"}
	schemeWords = []string{"bearer ", "basic "}
)

// harmlessSuffixes end names that contain such a word but do not name a secret: token_type, secret_name,
// password_length.
var harmlessSuffixes = []string{"type", "name", "id", "ids", "count", "limit", "length", "usage", "url", "uri", "path",
	"file", "policy", "expiry", "expires", "expires_in", "expires_at", "budget", "ref", "kind", "version"}

// minNamed and maxNamed limit the length of a value that is removed because of the word before it.
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
	if len(name) < len("pwd") || len(value) < minNamed || isHarmless(value) {
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

// wordScanner finds the words in order. It caches the next offset of each word, so that a long text is searched once
// for each word and not once for each match.
type wordScanner struct {
	text  string
	words []string
	at    []int // next offset of each word; -1 if there is none
}

func newWordScanner(text string) *wordScanner {
	s := &wordScanner{text: text, words: slices.Concat(secretWords, schemeWords)}
	for _, w := range s.words {
		s.at = append(s.at, strings.Index(text, w))
	}
	return s
}

// next returns the offset of the first word at or after from, or -1.
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

// namedValue returns the range of the secret that belongs to the word at i. The range is empty if there is none.
func namedValue(text, folded string, i int) (from, to int) {
	for _, w := range schemeWords {
		if strings.HasPrefix(folded[i:], w) {
			from, to = i+len(w), wordEnd(text, i+len(w))
			return from, endIfSecret(to-from >= 12 && !isPlainWord(text[from:to]) && !isHarmless(text[from:to]), from,
				to)
		}
	}
	word, nameEnd, ok := nameAt(folded, i)
	if !ok {
		return 0, 0
	}
	at := skipSpace(text, skipQuote(text, nameEnd))
	separator := byte(0) // the character between name and value, if any
	switch {
	case at < len(text) && (text[at] == ':' || text[at] == '='):
		separator = text[at]
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
	hasSpace := at < len(text) && text[at] == ' '
	at = skipSpace(text, at)
	if word == "authorization" {
		if q := skipQuote(text, at); schemeLen(folded[q:]) > 0 {
			at = q + schemeLen(folded[q:])
		}
	}
	return valueAt(text, at, word, separator, hasSpace)
}

// nameAt reads the rest of the name that contains the word at i. It returns false if the name does not name a secret.
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

// schemeLen returns the length of the scheme at the start of an authorization, or 0.
func schemeLen(folded string) int {
	for _, s := range []string{"bearer ", "basic ", "token ", "negotiate ", "digest "} {
		if strings.HasPrefix(folded, s) {
			return len(s)
		}
	}
	return 0
}

// valueAt returns the range of the value at i, which is empty if the value is not a secret. A quoted value counts up to
// its closing quote. An unquoted value must not look like prose or code.
func valueAt(text string, i int, word string, separator byte, hasSpace bool) (from, to int) {
	if q := skipQuote(text, i); q > i {
		end := quoteEnd(text, q, text[i:q])
		return q, endIfSecret(end-q >= minNamed && !isHarmless(text[q:end]), q, end)
	}
	to = wordEnd(text, i)
	v := text[i:to]
	isCall := to < len(text) && text[to] == '(' // a function call
	isProse := isPlainWord(v) && (separator == 0 || hasSpace && !strings.HasPrefix(word, "pass"))
	isCode := strings.Contains(v, ".") && isPlainWord(strings.ReplaceAll(v, ".", ""))
	return i, endIfSecret(len(v) >= minNamed && len(v) <= maxNamed && !isCall && !isProse && !isCode && !isHarmless(v),
		i, to)
}

// endIfSecret returns the end of a value if it is a secret, else its beginning.
func endIfSecret(secret bool, from, to int) int {
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

// skipQuote skips a quote, which may be escaped by a backslash.
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

// quoteEnd returns the end of the quoted value that starts at i: the next unescaped quote of the same kind, or the end
// of the text.
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

// isPlainWord reports whether a value consists of letters only, like words and identifiers.
func isPlainWord(v string) bool {
	for i := range len(v) {
		letter := classes[v[i]]&(lower|upper) != 0
		if !letter && v[i] != '_' && v[i] != '-' && (i < len(v)-1 || strings.IndexByte(".:!?", v[i]) < 0) {
			return false
		}
	}
	return true
}

// isHarmless reports whether a value in the place of a secret is not one, because it is a number, a reference to a
// variable, a placeholder or a mark.
func isHarmless(v string) bool {
	reference := len(v) > 1 && v[0] == '$' && (v[1] == '{' || v[1] == '(' || v[1] >= 'A' && v[1] <= 'Z')
	return reference || strings.Trim(v, "0123456789.,-") == "" || strings.Trim(v, "*xX.-_<>") == "" ||
		strings.Contains(v, Mark) || v == "REDACTED"
}

// lowerASCII lowers ASCII letters only, so that offsets stay the same.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c - 'A' + 'a'
		}
	}
	return string(b)
}
