package files

import (
	"cmp"
	"slices"
	"strings"

	"reeve"
)

// veil gives what is secret in some lines of a text, by line. They are judged with what stands around them: a line of a private key does not look like one.
func veil(inv *reeve.Invocation, all []string, first, n int) [][]reeve.Range {
	hidden := make([][]reeve.Range, n)
	if inv.Secrets == nil {
		return hidden
	}
	lo, hi := first, first+n
	for size := 0; lo > 0 && size < reeve.Around; size += len(all[lo]) {
		lo--
	}
	for size := 0; hi < len(all) && size < reeve.Around; hi++ {
		size += len(all[hi])
	}
	secrets := inv.Secrets(strings.Join(all[lo:hi], ""))
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
				hidden[k] = append(hidden[k], reeve.Range{From: max(s.From, at) - at, To: min(s.To, end) - at})
			}
		}
		at += len(line)
	}
	return hidden
}

// veiled is a line as it may be shown, and what that leaves out.
func veiled(line string, hidden []reeve.Range) (shown, secret string) {
	slices.SortFunc(hidden, func(a, b reeve.Range) int { return cmp.Compare(a.From, b.From) })
	done := 0
	for i, r := range hidden {
		if i == 0 || r.From > done {
			shown += line[done:r.From] + reeve.Redacted
			done = r.From
		}
		if r.To > done {
			secret += line[done:r.To]
			done = r.To
		}
	}
	return shown + line[done:], secret
}
