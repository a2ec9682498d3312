package redact

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Two tables decide which named values are secrets: the names that mean a secret, and the values that cannot be one.

// secretWords end a word of a name that means a secret: db_password, PGPASSWORD, authToken. The plural of a word means
// a number or a list, as in max_tokens.
var secretWords = []string{"password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "accesskey",
	"privatekey", "authorization", "credential", "credentials"}

// aboutWords end names that say something about a secret: token_type, secretName, password_length.
var aboutWords = []string{"type", "name", "id", "ids", "count", "limit", "length", "usage", "url", "uri", "path",
	"file", "dir", "policy", "expiry", "expires", "in", "at", "budget", "ref", "kind", "version", "endpoint", "field",
	"prefix", "format", "size", "range", "hint", "number", "placement", "encryption", "env", "var", "header",
	"method", "scope", "status", "ttl"}

// tokenKinds precede the word token in names of tokens that are no secret: positions in lists, and words of models.
var tokenKinds = []string{"page", "next", "prev", "previous", "pagination", "sync", "continuation", "continue",
	"cursor", "start", "starting", "resume", "resumption", "skip", "delta", "tik", "eos", "bos", "pad", "unk",
	"mask", "sep", "cls"}

// signedNames are the parts of signed addresses that contain such a word.
var signedNames = []string{"x-amz-credential", "x-amz-security-token", "x-goog-credential"}

// notSecret matches values that cannot be a secret.
var notSecret = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`[\d.,:_-]+`, // a number or a date
	`(?:npm:|workspace:)?` + versionRange + `(?:(?: \|\| | - | )` + versionRange + `)*`,
	`#[0-9A-Fa-f]{3,8}`, // a colour
	`\$[{(A-Z].*|\$[a-z_]+(?:(?:/|\.|::|->).*)?|\{\{.*|%[A-Za-z_]+%`, // a variable
	`[A-Z]+\d{0,2}(?:_[A-Z]+\d{0,2})+`,                               // the name of a variable
	`[a-z][a-z+.-]*://.*`,                                            // an address
	`(?:~|\.\.?|\$\w+|[A-Za-z]:)(?:/` + fileName + `)+/?|(?:/` + fileName + `){2,}/?`,
	`(?:` + fileName + `/)*[\w-]+\.(?:pem|key|json|ya?ml|txt|crt|env|toml|ini|cfg|conf|p12|pfx|jks|pub)`,
	`A[KS]IA[A-Z0-9]{16}.*`, // the id of a key
	`[*xX.<>_-]+|<.*>|(?i:` + placeholders + `)`,
}, "|") + `)$`)

const (
	versionRange = `[\^~<>=]*v?\d+(?:\.[\dx*]+)+(?:-[0-9A-Za-z.-]+)?`
	fileName     = `[A-Za-z._-]*\d{0,4}(?:[._-][A-Za-z0-9]{1,5})?`
	placeholders = `your.*|(?:insert|enter|put|paste|replace)[-_ ].*|.*[-_ ]here|change[-_ ]?(?:me|it)|replaceme|` +
		`example|placeholder|dummy|redacted|hidden|password|passwd|passphrase|secret|bearer|` + // instead of a value
		`required|optional|undefined|unknown|missing|invalid|incorrect|expired|disabled|enabled|default|` + // a state
		`string|boolean|number|integer|same-origin|include` // a type or a mode
)

// minNamed and maxNamed limit the length of a value that is removed because of the name before it. maxName limits the
// length of the name.
const minNamed, maxNamed, maxName = 6, 4096, 64

// findNamed finds values that follow a name such as password=, "token": or Authorization: Bearer.
func findNamed(text string) (found []Range) {
	var quotes openQuotes
	done := 0
	for i := range len(text) {
		if i >= done && strings.IndexByte(":= ", text[i]) >= 0 {
			if from, to := namedValue(text, i, quotes); from < to {
				found, done = append(found, Range{From: from, To: to}), to
			}
		}
		quotes.pass(text, i)
	}
	return found
}

// findNamedMember finds the secret in the value of a JSON member with a name such as db_password.
func findNamedMember(name, value string) []Range {
	word := secretWord(name)
	v := namedText{word: word, name: name, text: value, isQuoted: true}
	if word == "authorization" {
		v.text = value[schemeLen(value):]
	}
	if word == "" || !v.isSecret() {
		return nil
	}
	return []Range{{From: len(value) - len(v.text), To: len(value)}}
}

// namedValue returns the range of the secret that follows the separator at i: a colon, an equals sign, the word is, or
// the space after Bearer or Basic. The range is empty if there is none.
func namedValue(text string, i int, quotes openQuotes) (from, to int) {
	name := nameBefore(text, i)
	if text[i] == ' ' && (strings.EqualFold(name, "bearer") || strings.EqualFold(name, "basic")) {
		to = wordEnd(text, i+1)
		v := text[i+1 : to]
		if len(v) < 12 || !strings.ContainsAny(v, "0123456789=") || isHarmless(v) {
			to = i + 1
		}
		return i + 1, to
	}
	at := i + 1
	switch {
	case text[i] == ' ' && strings.HasPrefix(text[at:], "is "):
		at += len("is")
	case text[i] == ' ' || strings.HasPrefix(text[i:], "::"):
		return 0, 0
	case at < len(text) && (text[at] == '=' || text[at] == '>' || strings.HasPrefix(text[i:], ":-")): // == or :- or =>
		at++
	}
	word := secretWord(name)
	isReference := strings.HasSuffix(text[:i], "${"+name) && !strings.HasPrefix(text[i:], ":-") // ${secret:NAME}
	if word == "" || isReference {
		return 0, 0
	}
	v := namedText{word: word, name: name, isStatement: text[i] == ' '}
	v.hasSpace = at < len(text) && text[at] == ' '
	v.isGo = v.hasSpace && strings.HasPrefix(text[i:], ":=")
	at = skipSpace(text, at)
	if word == "authorization" {
		if q := skipQuote(text, at); schemeLen(text[q:]) > 0 {
			at = q + schemeLen(text[q:])
		}
	}
	from = skipQuote(text, at)
	if v.isQuoted = from > at; v.isQuoted {
		for j := i; j < at; j++ {
			quotes.pass(text, j)
		}
		if quotes.isClosedAt(text, from-1) && (from == len(text) || !isAlnum(text[from])) {
			return 0, 0 // the quote closes the name, as in "password=" + p
		}
		to = quoteEnd(text, from, text[at:from])
	} else {
		to = wordEnd(text, from)
	}
	v.text, v.rest = text[from:to], text[to:]
	if !v.isSecret() {
		return 0, 0
	}
	return from, to
}

// nameBefore returns the name that ends before i, without quotes and spaces around it. The name is empty if there is
// none or if it is too long.
func nameBefore(text string, i int) string {
	end := i
	for end > 0 && (text[end-1] == ' ' || text[end-1] == '\t') && i-end < maxName {
		end--
	}
	if end > 0 && isQuote(text[end-1]) {
		if end--; end > 0 && text[end-1] == '\\' {
			end--
		}
	}
	begin := end
	for begin > 0 && end-begin <= maxName && (isAlnum(text[begin-1]) || classes[text[begin-1]] == dash) {
		begin--
	}
	if end-begin > maxName {
		return ""
	}
	if begin < end && begin > 0 && text[begin-1] == '\\' { // the letter of an escape such as \n
		begin++
	}
	return text[begin:end]
}

// secretWord returns the word that makes a name mean a secret, or "".
func secretWord(name string) string {
	if len(name) < len("pwd") || len(name) > maxName {
		return ""
	}
	folded := strings.ToLower(name)
	isSigned := func(s string) bool { return strings.HasSuffix(folded, s) }
	if slices.ContainsFunc(signedNames, isSigned) {
		return ""
	}
	words := splitName(name)
	if len(words) == 0 || slices.Contains(aboutWords, words[len(words)-1]) {
		return ""
	}
	for n, word := range words {
		if n > 0 && (word == "key" || word == "token") {
			word = words[n-1] + word
		}
		for _, s := range secretWords {
			if kind, ok := strings.CutSuffix(word, s); ok && (s != "token" || !slices.Contains(tokenKinds, kind)) {
				return s
			}
		}
	}
	return ""
}

// splitName returns the words of a name in lower case, without digits: db_password2, dbPassword and DBPassword have the
// words db and password.
func splitName(name string) (words []string) {
	begin := 0
	end := func(i int) {
		if begin < i {
			words = append(words, strings.ToLower(name[begin:i]))
		}
		begin = i
	}
	for i := range len(name) {
		isLower := func(i int) bool { return i < len(name) && classes[name[i]]&lower != 0 }
		switch c := classes[name[i]]; {
		case c&(lower|upper) == 0:
			end(i)
			begin = i + 1
		case c&upper != 0 && i > begin && (isLower(i-1) || isLower(i+1)):
			end(i)
		}
	}
	end(len(name))
	return words
}

// schemeLen returns the length of the scheme at the start of an authorization, or 0.
func schemeLen(s string) int {
	for _, scheme := range []string{"bearer ", "basic ", "token ", "negotiate ", "digest "} {
		if len(s) >= len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			return len(scheme)
		}
	}
	return 0
}

// namedText is a value and what is known about it.
type namedText struct {
	name, word  string // the name, and the word that makes it mean a secret
	text, rest  string // the value, and what follows it
	isQuoted    bool
	isStatement bool // as in "the token is ..."
	isGo        bool // as in token := c.Token
	hasSpace    bool // after the separator
}

// isSecret reports whether a value is a secret. A quoted value of more than one word, and an unquoted value, must not
// look like prose or code. Passwords may look like prose.
func (v namedText) isSecret() bool {
	isPassword := strings.HasPrefix(v.word, "pass")
	isDirectory := strings.HasSuffix(v.name, "PWD") && strings.HasPrefix(v.text, "/") // the folder of a shell
	if len(v.text) < minNamed || len(v.text) > maxNamed || isDirectory || isHarmless(v.text) {
		return false
	}
	if v.isQuoted {
		words := strings.FieldsFunc(v.text, func(r rune) bool { return strings.ContainsRune(` ,\\`, r) })
		return isPassword || len(words) < 2 || !isPlainWord(strings.Join(words, ""))
	}
	path := strings.ReplaceAll(v.text, ".", "")
	isCall := v.rest != "" && strings.IndexByte("([", v.rest[0]) >= 0
	isCode := (isCall || v.isGo) && identifier.MatchString(path)
	isPath := path != v.text && isPlainWord(path)
	isProse := isPlainWord(v.text) && (v.isStatement || v.hasSpace && !isPassword)
	return !isCode && !isPath && !isProse && !v.isVariable()
}

// isVariable reports whether a value is a variable that is named like a secret, as in password=new_password.
func (v namedText) isVariable() bool {
	isName := isPlainWord(v.text) && classes[v.text[0]] != upper && secretWord(strings.TrimSuffix(v.text, "s")) != ""
	return isName && (len(splitName(v.text)) > 1 || v.text[0] == '_' || strings.EqualFold(v.text, v.name) ||
		v.text == "credentials")
}

var identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

func isQuote(b byte) bool { return b == '"' || b == '\'' || b == '`' }

// skipQuote skips a quote, which may be escaped by a backslash.
func skipQuote(s string, i int) int {
	j := i
	if j < len(s) && s[j] == '\\' {
		j++
	}
	if j < len(s) && isQuote(s[j]) {
		return j + 1
	}
	return i
}

// openQuotes records which quotes are open in the current line: ", ' and `, and the same behind a backslash.
type openQuotes [6]bool

// pass continues behind the byte at i.
func (o *openQuotes) pass(text string, i int) {
	if text[i] == '\n' {
		*o = openQuotes{}
	}
	isApostrophe := text[i] == '\'' && i > 0 && isAlnum(text[i-1]) && i+1 < len(text) && isAlnum(text[i+1])
	if isQuote(text[i]) && !isApostrophe {
		n := quoteIndex(text, i)
		o[n] = !o[n]
	}
}

// isClosedAt reports whether the quote at i closes an earlier one.
func (o *openQuotes) isClosedAt(text string, i int) bool { return o[quoteIndex(text, i)] }

func quoteIndex(text string, i int) int {
	n := strings.IndexByte("\"'`", text[i])
	if i > 0 && text[i-1] == '\\' {
		n += 3
	}
	return n
}

// quoteEnd returns the end of the quoted value that starts at i: the next unescaped quote of the same kind, or the end
// of the line. Behind an escaped quote, an escaped line break ends the line.
func quoteEnd(s string, i int, quote string) int {
	stop := min(len(s), i+maxNamed)
	for stop < len(s) && !utf8.RuneStart(s[stop]) {
		stop--
	}
	slashes := 0
	for j := i; j < stop; j++ {
		switch {
		case s[j] == '\\':
			slashes++
			continue
		case s[j] == '\n' || s[j] == '\r':
			return j
		case slashes == 1 && len(quote) == 2 && (s[j] == 'n' || s[j] == 'r'):
			return j - 1
		case s[j] == quote[len(quote)-1] && slashes%(2*len(quote)) == len(quote)-1:
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

// isHarmless reports whether a value in the place of a secret cannot be one.
func isHarmless(v string) bool { return strings.Contains(v, Mark) || notSecret.MatchString(v) }
