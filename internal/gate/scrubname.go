package gate

import (
	"slices"
	"strings"
	"unicode/utf8"

	"reeve"
)

// words are what a secret is called. Only what follows one is looked at closely. The bare ones stand right before the secret,
// as in a header.
var (
	words = []string{"password", "passwd", "passphrase", "pwd", "secret", "token", "api_key", "api-key", "apikey", "access_key", "private_key",
		"authorization", "credential"}
	bare = []string{"bearer ", "basic "}
)

// notSecret is what a name may end in that speaks of a secret without being one: token_type, secret_name, password_length.
var notSecret = []string{"type", "name", "id", "ids", "count", "limit", "length", "usage", "url", "uri", "path", "file", "policy", "expiry",
	"expires", "expires_in", "expires_at", "budget", "ref", "kind", "version"}

// findNamed finds values that follow a telling word: password=…, "token": "…", Authorization: Bearer …
func findNamed(text string) (found []reeve.Range) {
	lower := asciiLower(text)
	words := newFinder(lower)
	for at := 0; ; {
		next := words.from(at)
		if next < 0 {
			return found
		}
		from, to := valueAfter(text, lower, next)
		if to <= from {
			at = next + 1
			continue
		}
		found, at = append(found, reeve.Range{From: from, To: to}), to
	}
}

// finder finds telling words one after another. It remembers where each word comes next, so that a long text is read once
// for each word and not once for each find.
type finder struct {
	text string
	next [32]int // where each of the telling words comes next, of which there are fewer; -1 means not any more
}

var telling = append(slices.Clone(words), bare...)

func newFinder(text string) (f finder) {
	f.text = text
	for i, w := range telling {
		f.next[i] = strings.Index(text, w)
	}
	return f
}

func (f *finder) from(at int) int {
	first := -1
	for n, w := range telling {
		i := f.next[n]
		if i >= 0 && i < at {
			if i = strings.Index(f.text[at:], w); i >= 0 {
				i += at
			}
			f.next[n] = i
		}
		if i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	return first
}

// valueAfter finds the secret that belongs to the word at i; an empty range means that there is none.
func valueAfter(text, lower string, i int) (from, to int) {
	for _, w := range bare {
		if strings.HasPrefix(lower[i:], w) {
			from, to = i+len(w), wordEnd(text, i+len(w))
			return from, keepIf(to-from >= 12 && !plainWord(text[from:to]) && !harmless(text[from:to]), from, to)
		}
	}
	word, nameEnd, ok := nameAt(lower, i)
	if !ok {
		return 0, 0
	}
	at := skipSpace(text, skipQuote(text, nameEnd))
	joint := byte(0)
	switch {
	case at < len(text) && (text[at] == ':' || text[at] == '='):
		joint = text[at]
		if at++; at < len(text) && (text[at] == '=' || text[at] == '>') { // a comparison, an assignment in Go, or => of a map
			at++
		}
	case strings.HasPrefix(lower[at:], "is ") && at > nameEnd:
		at += len("is")
	default:
		return 0, 0
	}
	if text[i:nameEnd] == "PWD" && strings.HasPrefix(text[skipQuote(text, at):], "/") {
		return 0, 0 // the directory that a shell is in. What looks random in it is found by its form
	}
	spaced := at < len(text) && text[at] == ' '
	at = skipSpace(text, at)
	if word == "authorization" {
		if quote := skipQuote(text, at); scheme(lower[quote:]) > 0 {
			at = quote + scheme(lower[quote:])
		}
	}
	return valueAt(text, at, word, joint, spaced)
}

// nameAt reads the rest of the name in which the telling word at i stands; ok is false when it speaks of a secret without being the name of one.
func nameAt(lower string, i int) (word string, end int, ok bool) {
	for _, w := range words {
		if strings.HasPrefix(lower[i:], w) {
			word = w
			break
		}
	}
	end = i + len(word)
	for end < len(lower) && end < i+40 && (isLetter(lower[end]) || lower[end] == '_' || lower[end] == '-' || isDigit(lower[end])) {
		end++
	}
	for _, s := range notSecret {
		if rest := lower[i+len(word) : end]; strings.HasSuffix(rest, "_"+s) || strings.HasSuffix(rest, "-"+s) {
			return word, end, false
		}
	}
	return word, end, word != ""
}

// scheme is how long the word is that an authorization begins with.
func scheme(lower string) int {
	for _, s := range []string{"bearer ", "basic ", "token ", "negotiate ", "digest "} {
		if strings.HasPrefix(lower, s) {
			return len(s)
		}
	}
	return 0
}

// valueUnder finds the secret in a value that a member of a JSON object has, by its name.
func valueUnder(name, value string) []reeve.Range {
	if len(name) < len("pwd") || len(value) < shortest || harmless(value) {
		return nil
	}
	lower := asciiLower(name)
	telling := newFinder(lower)
	for i := telling.from(0); i >= 0; i = telling.from(i + 1) {
		word, end, ok := nameAt(lower, i)
		if !ok || end < len(name) || name[i:] == "PWD" && strings.HasPrefix(value, "/") {
			continue
		}
		from := 0
		if word == "authorization" {
			from = scheme(asciiLower(value))
		}
		return []reeve.Range{{From: from, To: len(value)}}
	}
	return nil
}

// shortest and longest are what the length of a secret may be that follows a telling word.
const shortest, longest = 6, 4096

// valueAt bounds the value at i and judges it. A quoted value is taken whole, whatever it holds; an unquoted one must not look
// like prose or code.
func valueAt(text string, i int, word string, joint byte, spaced bool) (from, to int) {
	if q := skipQuote(text, i); q > i {
		end := quoteEnd(text, q, text[i:q])
		return q, keepIf(end-q >= shortest && !harmless(text[q:end]), q, end)
	}
	to = wordEnd(text, i)
	v := text[i:to]
	called := to < len(text) && text[to] == '(' // a function in code
	prose := plainWord(v) && (joint == 0 || spaced && !strings.HasPrefix(word, "pass"))
	code := strings.Contains(v, ".") && plainWord(strings.ReplaceAll(v, ".", ""))
	return i, keepIf(len(v) >= shortest && len(v) <= longest && !called && !prose && !code && !harmless(v), i, to)
}

func keepIf(secret bool, from, to int) int {
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

// skipQuote steps over a quote, which inside a JSON string has a backslash before it.
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

// quoteEnd finds where a value ends that begins at i, after a quote: at the next one like it that is not escaped. A value without one was cut off, and is a secret all
// the same.
func quoteEnd(s string, i int, quote string) int {
	stop := min(len(s), i+longest)
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
	for i < len(s) && s[i] > ' ' && !strings.ContainsRune("\"'`\\,;&<>(){}[]", rune(s[i])) {
		i++
	}
	return i
}

// plainWord tells whether a value is letters only, as words and identifiers are.
func plainWord(v string) bool {
	for i := range len(v) {
		if !isLetter(v[i]|0x20) && v[i] != '_' && v[i] != '-' && !(i == len(v)-1 && strings.IndexByte(".:!?", v[i]) >= 0) {
			return false
		}
	}
	return true
}

// harmless tells what may stand where a secret is expected: an id of ours, a number, a reference, a blank, a mark of ours.
func harmless(v string) bool {
	reference := len(v) > 1 && v[0] == '$' && (v[1] == '{' || v[1] == '(' || v[1] >= 'A' && v[1] <= 'Z')
	return reeve.IsID(v) || reference || strings.Trim(v, "0123456789.,-") == "" || strings.Trim(v, "*xX.-_<>") == "" || strings.Contains(v, redacted) ||
		v == "REDACTED"
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// asciiLower lowers without moving anything: the lower case of some other letters is longer.
func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
