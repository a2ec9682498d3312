package gate

import (
	"math"
	"slices"
	"strings"

	"reeve"
)

// forms are how well-known keys begin; each is at least this long in all.
var forms = []struct {
	prefix string
	length int
}{
	{"sk-", 20}, {"sk_live_", 20}, {"sk_test_", 20}, {"rk_live_", 20}, {"ghp_", 20}, {"gho_", 20}, {"ghs_", 20}, {"ghu_", 20}, {"ghr_", 20},
	{"github_pat_", 24}, {"glpat-", 20}, {"xoxb-", 20}, {"xoxp-", 20}, {"xoxa-", 20}, {"xoxs-", 20}, {"xapp-", 20}, {"AKIA", 20}, {"ASIA", 20},
	{"AIza", 30}, {"ya29.", 20}, {"eyJ", 40}, {"hf_", 20}, {"npm_", 20}, {"pypi-", 20}, {"dop_v1_", 20}, {"reeve_", 30}, {"whsec_", 20}, {"SG.", 40},
}

// findRuns looks at every long run of key characters.
func findRuns(text string) (found []reeve.Range) {
	start := -1
	flush := func(end int) {
		for start >= 0 && end-start >= 20 {
			from, to := pathIn(text[start:end])
			if r := secretAt(text, start, start+from); r.To > r.From {
				found = append(found, r)
			}
			start += to
		}
		start = -1
	}
	for i := range len(text) {
		if keyChars[text[i]] {
			if start < 0 {
				start = i
			}
			continue
		}
		flush(i)
	}
	flush(len(text))
	return found
}

// roots are where the paths of a workspace begin. A file may have any name, and people must be able to open it.
var roots = []string{"/shared/", "/tmp/", "/project/", "/vault/"}

// pathIn finds a path of the workspace in a run: from one of its roots to the end, or to what is said of it. Without one it gives the run's end.
func pathIn(run string) (from, to int) {
	for i := range len(run) {
		if run[i] != '/' || i > 0 && strings.IndexByte("=:", run[i-1]) < 0 {
			continue
		}
		if slices.ContainsFunc(roots, func(root string) bool { return strings.HasPrefix(run[i:], root) }) {
			if n := strings.IndexAny(run[i:], "=:"); n >= 0 {
				return i, i + n
			}
			return i, len(run)
		}
	}
	return len(run), len(run)
}

// secretAt finds a secret in the run from start to end. Letters that an escape before it may have need not be its own: \n and \u00e9 stay whole.
func secretAt(text string, start, end int) reeve.Range {
	if start > 0 && text[start-1] == '\\' {
		_, n := backslash(text[start-1 : end])
		if _, half := unit(text[start-1 : end]); half { // the second half of a character, too
			n = 6
		}
		if n > 0 {
			if from, to := secretIn(text[start-1+n : end]); to > from {
				return reeve.Range{From: start - 1 + n + from, To: start - 1 + n + to}
			}
		}
	}
	from, to := secretIn(text[start:end])
	return reeve.Range{From: start + from, To: start + to}
}

// keyChars are the characters that keys are made of.
var keyChars = func() (is [256]bool) {
	for c := range is {
		is[c] = isLetter(byte(c)|0x20) || isDigit(byte(c)) || strings.IndexByte("_-+/=.:", byte(c)) >= 0
	}
	return is
}()

// secretIn finds a secret in a run: a known form at its start or after a separator, or a part that looks random.
func secretIn(run string) (from, to int) {
	for i := range len(run) {
		if i > 0 && strings.IndexByte("=:/.", run[i-1]) < 0 {
			continue
		}
		for _, f := range forms {
			if len(run)-i >= f.length && strings.HasPrefix(run[i:], f.prefix) {
				return i, len(run)
			}
		}
	}
	if len(run) > 512 { // data, not a key
		return 0, 0
	}
	from, to = -1, 0
	begin := 0
	for i := 0; i <= len(run); i++ {
		if i < len(run) && strings.IndexByte("/.:", run[i]) < 0 {
			continue
		}
		part := strings.TrimRight(run[begin:i], "=")
		if eq := strings.LastIndexByte(part, '='); eq >= 0 { // name=value
			begin, part = begin+eq+1, part[eq+1:]
		}
		if len(part) >= 24 && !reeve.IsID(part) && random(part) {
			if from < 0 {
				from = begin
			}
			to = i
		}
		begin = i + 1
	}
	if from < 0 && len(run) == 40 && run[0] != '/' && !strings.ContainsAny(run, ".:=-_") && random(strings.ReplaceAll(run, "/", "")) {
		return 0, len(run) // an AWS secret key, which slashes may take apart
	}
	return max(from, 0), to
}

// random tells whether a string looks drawn by lot: upper and lower case and digits, mixed throughout. Words joined in a name
// change class rarely, but for the hyphens between them, which do not count, and hold small letters in a row; hashes and UUIDs
// have one case.
func random(s string) bool {
	var count [256]int
	var lower, upper, digit, changes, rows int
	last := byte(0)
	for i := range len(s) {
		c := s[i]
		count[c]++
		class := byte(0)
		switch {
		case isLetter(c):
			lower++
			if class = 'a'; last != 'a' {
				rows++
			}
		case c >= 'A' && c <= 'Z':
			upper++
			class = 'A'
		case isDigit(c):
			digit++
			class = '0'
		}
		if class != last && class != 0 && last != 0 {
			changes++
		}
		last = class
	}
	if lower < 3 || upper < 3 || digit < 1 || float64(changes) < 0.35*float64(len(s)) || float64(lower) > 2.6*float64(rows) {
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
