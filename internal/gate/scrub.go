package gate

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// scrubber takes secrets out of text: values it knows, private keys, passwords in addresses, values that follow a telling word,
// well-known forms of keys, and long strings that look drawn by lot. It leaves what people need: ids that Reeve issued, hashes,
// UUIDs and paths.
type scrubber struct {
	values []string
	known  *strings.Replacer
}

const redacted = "[REDACTED]"

// newScrubber knows values in every spelling they are likely to come back in. The longest come first: of two that begin alike
// the shorter would leave the rest of the longer.
func newScrubber(values []string) *scrubber {
	var all []string
	for _, v := range values {
		for _, s := range []string{v, strings.TrimSpace(v)} {
			if len(s) >= 4 { // a shorter one would take ordinary words with it
				all = append(all, spellings(s)...)
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var pairs []string
	for _, s := range slices.Compact(all) {
		pairs = append(pairs, s, redacted)
	}
	return &scrubber{values: values, known: strings.NewReplacer(pairs...)}
}

func (s *scrubber) scrub(text string) string {
	text = s.known.Replace(text)
	text = scrubPEM(text)
	text = scrubAddress(text)
	text = scrubNamed(text)
	return scrubRuns(text)
}

// scrubPEM removes private keys.
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
		if !strings.Contains(head, "PRIVATE KEY") || len(head) > 40 {
			from = i + len(begin)
			continue
		}
		stop := len(text) // one without an end was cut off, and is a key all the same
		if j := strings.Index(text[i:], end); j >= 0 {
			stop = min(i+j+len(end)+len(head)+len("-----"), len(text))
		}
		text = text[:i] + redacted + text[stop:]
		from = i + len(redacted)
	}
}

// userinfo is a name and a password before the host of an address.
var userinfo = regexp.MustCompile(`(://[^/\s:@"']*:)[^/\s@"']+@`)

func scrubAddress(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return userinfo.ReplaceAllString(text, "${1}"+redacted+"@")
}
