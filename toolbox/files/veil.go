package files

import (
	"strings"

	"reeve"
)

// veil gives what is secret in some lines of a text, by line, and notes its pieces. They are judged with what stands around them: a line of a private key does not look like one.
func veil(inv *reeve.Invocation, all []string, first, n int, known reeve.Pieces) [][]reeve.Range {
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
	text := strings.Join(all[lo:hi], "")
	secrets := inv.Secrets(text)
	for _, s := range secrets {
		if len(known) < piecesNear {
			known.Add(text[s.From:s.To])
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
				r := reeve.Range{From: max(s.From, at) - at, To: min(s.To, end) - at}
				hidden[k] = append(hidden[k], r)
				known.Add(line[r.From:r.To])
			}
		}
		at += len(line)
	}
	return hidden
}

// piecesNear is how many pieces are noted before those of secrets that are only near the lines are not.
const piecesNear = 64 << 10
