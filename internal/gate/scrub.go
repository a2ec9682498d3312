package gate

import (
	"math"
	"regexp"
	"strings"

	"reeve"
)

// scrubber takes secrets out of text: values it knows, values that follow a telling word, well-known forms of keys, and long
// strings that look random. It leaves what people need: ids that Reeve issued, hashes, UUIDs and paths.
type scrubber struct{ known *strings.Replacer }

const redacted = "[REDACTED]"

func newScrubber(values []string) *scrubber {
	var pairs []string
	for _, v := range values {
		if len(v) >= 4 { // a shorter one would take ordinary words with it
			pairs = append(pairs, v, redacted)
		}
	}
	return &scrubber{known: strings.NewReplacer(pairs...)}
}

func (s *scrubber) scrub(text string) string {
	text = s.known.Replace(text)
	text = scrubPEM(text)
	text = scrubNamed(text)
	return scrubRandom(text)
}

// scrubPEM removes the body of private keys.
func scrubPEM(text string) string {
	const begin, end = "-----BEGIN ", "-----END "
	for from := 0; ; {
		i := strings.Index(text[from:], begin)
		if i < 0 {
			return text
		}
		i += from
		head, _, ok := strings.Cut(text[i+len(begin):], "-----")
		if !ok {
			return text
		}
		if !strings.HasSuffix(head, "PRIVATE KEY") || len(head) > 40 {
			from = i + len(begin)
			continue
		}
		stop := len(text)
		if j := strings.Index(text[i:], end); j >= 0 {
			stop = i + j + len(end) + len(head) + len("-----")
			stop = min(stop, len(text))
		}
		text = text[:i] + redacted + text[stop:]
		from = i + len(redacted)
	}
}

// words are what a secret is called. Only text around them is looked at closely.
var words = []string{"password", "passwd", "secret", "token", "api_key", "api-key", "apikey", "access_key", "private_key", "bearer ", "basic ", "authorization"}

// named matches a telling word at the start, what joins it to a value, and the value.
var named = regexp.MustCompile(`^(?i)((?:password|passwd|secret|token|api[_-]?key|access_key|private_key)[a-z_]{0,12}(?:\\?["'])?\s*(?:[:=]|\bis\b)\s*(?:\\?["'])?|bearer |basic |authorization(?:\\?["'])?\s*[:=]\s*(?:\\?["'])?(?:bearer |basic |token )?)([^\s"'\\,;&<>(){}\[\]]{6,512})`)

func scrubNamed(text string) string {
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // a letter whose lower case is longer; positions would not agree
		lower = asciiLower(text)
	}
	var out strings.Builder
	done := 0
	for at := 0; at < len(text); {
		next := -1
		for _, w := range words {
			if i := strings.Index(lower[at:], w); i >= 0 && (next < 0 || at+i < next) {
				next = at + i
			}
		}
		if next < 0 {
			break
		}
		m := named.FindStringSubmatchIndex(text[next:min(len(text), next+600)])
		if m == nil || harmless(text[next+m[4]:next+m[5]]) {
			at = next + 1
			continue
		}
		out.WriteString(text[done : next+m[4]])
		out.WriteString(redacted)
		done = next + m[5]
		at = done
	}
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// harmless tells what may stand where a secret is expected: an id of ours, a number, a reference, or a blank.
func harmless(v string) bool {
	return reeve.IsID(v) || strings.HasPrefix(v, "$") || strings.Trim(v, "0123456789.") == "" || strings.Trim(v, "*x.-") == "" ||
		v == redacted || v == "required" || v == "string" || v == "number" || v == "integer" || v == "boolean" || v == "object" || v == "undefined"
}

// forms are how well-known keys begin; each is at least this long in all.
var forms = []struct {
	prefix string
	length int
}{
	{"sk-", 20}, {"sk_live_", 20}, {"sk_test_", 20}, {"rk_live_", 20}, {"ghp_", 20}, {"gho_", 20}, {"ghs_", 20}, {"ghu_", 20}, {"github_pat_", 24},
	{"glpat-", 20}, {"xoxb-", 20}, {"xoxp-", 20}, {"xoxa-", 20}, {"AKIA", 20}, {"ASIA", 20}, {"AIza", 30}, {"eyJ", 40}, {"hf_", 20}, {"npm_", 20},
	{"reeve_", 30}, {"whsec_", 20}, {"SG.", 40},
}

// scrubRandom looks at every long run of key characters.
func scrubRandom(text string) string {
	var out strings.Builder
	done, start := 0, -1
	flush := func(end int) {
		if start >= 0 && end-start >= 20 {
			if run := text[start:end]; secretRun(run) {
				out.WriteString(text[done:start])
				out.WriteString(redacted)
				done = end
			}
		}
		start = -1
	}
	for i := range len(text) {
		if keyChar(text[i]) {
			if start < 0 {
				start = i
			}
			continue
		}
		flush(i)
	}
	flush(len(text))
	if done == 0 {
		return text
	}
	out.WriteString(text[done:])
	return out.String()
}

func keyChar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '+' || c == '/' || c == '=' || c == '.' || c == ':'
}

func secretRun(run string) bool {
	for _, f := range forms {
		if len(run) >= f.length && strings.HasPrefix(run, f.prefix) {
			return true
		}
	}
	if len(run) > 512 { // data, not a key
		return false
	}
	for _, part := range strings.FieldsFunc(run, func(r rune) bool { return r == '/' || r == '.' || r == ':' }) {
		if len(part) >= 24 && !reeve.IsID(part) && random(part) {
			return true
		}
	}
	return false
}

// random tells whether a string looks drawn by lot: upper and lower case and digits, mixed throughout. Words joined in an
// identifier change class rarely; hashes and UUIDs have one case.
func random(s string) bool {
	var count [256]int
	var lower, upper, digit, changes int
	last := byte(0)
	for i := range len(s) {
		c := s[i]
		count[c]++
		class := byte('-')
		switch {
		case c >= 'a' && c <= 'z':
			lower++
			class = 'a'
		case c >= 'A' && c <= 'Z':
			upper++
			class = 'A'
		case c >= '0' && c <= '9':
			digit++
			class = '0'
		}
		if i > 0 && class != last {
			changes++
		}
		last = class
	}
	if lower < 3 || upper < 3 || digit < 2 || float64(changes) < 0.35*float64(len(s)) {
		return false
	}
	entropy := 0.0
	for _, n := range count {
		if n > 0 {
			f := float64(n) / float64(len(s))
			entropy -= f * math.Log2(f)
		}
	}
	return entropy >= 3.8
}
