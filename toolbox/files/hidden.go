package files

import (
	"strings"

	"reeve"
	"reeve/internal/redact"
)

// hiddenInLines returns the places of secrets in n lines of a text, line by line, and adds the fragments of these
// secrets. Lines are judged with those around them: a line of a private key is not recognised by itself.
func hiddenInLines(inv *reeve.Invocation, all []string, first, n int, fragments redact.Fragments) [][]redact.Range {
	hidden := make([][]redact.Range, n)
	lo, hi := first, first+n
	for size := 0; lo > 0 && size < reeve.RedactWindow; size += len(all[lo]) {
		lo--
	}
	for size := 0; hi < len(all) && size < reeve.RedactWindow; hi++ {
		size += len(all[hi])
	}
	text := strings.Join(all[lo:hi], "")
	secrets := inv.Redactor.Find(text)
	for _, s := range secrets {
		if len(fragments) < maxNearFragments {
			fragments.Add(text[s.From:s.To])
		}
	}
	at := 0
	for i, line := range all[lo : first+n] {
		end := at + len(strings.TrimSuffix(line, "\n"))
		for len(secrets) > 0 && secrets[0].To <= at {
			secrets = secrets[1:]
		}
		for _, s := range secrets {
			if s.From >= end {
				break
			}
			if k := lo + i - first; k >= 0 && max(s.From, at) < min(s.To, end) {
				r := redact.Range{From: max(s.From, at) - at, To: min(s.To, end) - at}
				hidden[k] = append(hidden[k], r)
				fragments.Add(line[r.From:r.To])
			}
		}
		at += len(line)
	}
	return hidden
}

// maxNearFragments bounds the fragments of secrets that are near the lines but not in them.
const maxNearFragments = 64 << 10
