package gate

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"reeve"
)

// scrubber takes secrets out of text: values it knows, private keys, passwords in addresses, values that follow a telling word,
// well-known forms of keys, and long strings that look drawn by lot. It leaves what people need: ids that Reeve issued, hashes,
// UUIDs and paths.
type scrubber struct {
	values []string
	known  *needles
}

const redacted = reeve.Redacted

// newScrubber knows values in every spelling they are likely to come back in.
func newScrubber(values []string) *scrubber {
	var all []string
	for _, v := range values {
		for _, s := range []string{v, strings.TrimSpace(v)} {
			if len(s) >= least { // a shorter one would take ordinary words with it
				all = append(all, spellings(s)...)
			}
		}
	}
	return &scrubber{values: values, known: newNeedles(all)}
}

// scrub takes secrets out of a text. Members of JSON objects that have one of the names given are names of files, which only hold the secrets that are known.
func (s *scrubber) scrub(text string, names ...string) string {
	if isJSON(text) {
		return s.scrubJSON(text, names)
	}
	return reeve.Redact(text, s.find(text))
}

// find gives the places of secrets in a text, in order; none overlaps another.
func (s *scrubber) find(text string) []reeve.Range {
	if len(text) < len("pwd=")+shortest { // the least that is told by its looks
		return s.known.spelt(text)
	}
	return union(s.known.spelt(text), findPEM(text), findAddress(text), findNamed(text), findRuns(text))
}

// union puts ranges in order, and makes one of those that overlap.
func union(lists ...[]reeve.Range) []reeve.Range {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b reeve.Range) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To)) })
	out := all[:0]
	for _, r := range all {
		if n := len(out); n > 0 && r.From < out[n-1].To {
			out[n-1].To = max(out[n-1].To, r.To)
		} else {
			out = append(out, r)
		}
	}
	return out
}

const pemBegin, pemEnd = "-----BEGIN ", "-----END "

// findPEM finds private keys.
func findPEM(text string) (found []reeve.Range) {
	for from := 0; ; {
		i := strings.Index(text[from:], pemBegin)
		if i < 0 {
			return found
		}
		i += from
		head, _, ok := strings.Cut(text[i+len(pemBegin):], "-----")
		if !ok {
			return found
		}
		if !strings.Contains(head, "PRIVATE KEY") || len(head) > 40 {
			from = i + len(pemBegin)
			continue
		}
		stop := len(text) // one without an end was cut off, and is a key all the same
		if j := strings.Index(text[i:], pemEnd); j >= 0 {
			stop = min(i+j+len(pemEnd)+len(head)+len("-----"), len(text))
		}
		found = append(found, reeve.Range{From: i, To: stop})
		from = stop
	}
}

// userinfo is a name and a password before the host of an address.
var userinfo = regexp.MustCompile(`://[^/\s:@"']*:([^/\s"']+)@`)

func findAddress(text string) (found []reeve.Range) {
	if !strings.Contains(text, "://") {
		return nil
	}
	for _, m := range userinfo.FindAllStringSubmatchIndex(text, -1) {
		found = append(found, reeve.Range{From: m[2], To: m[3]})
	}
	return found
}
