package files

import (
	"cmp"
	"slices"
	"strings"

	"reeve"
)

// veil gives what is secret in some lines of a text, by line, and notes its pieces. They are judged with what stands around them: a line of a private key does not look like one.
func veil(inv *reeve.Invocation, all []string, first, n int, known pieces) [][]reeve.Range {
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
			known.add(text[s.From:s.To])
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
				known.add(line[r.From:r.To])
			}
		}
		at += len(line)
	}
	return hidden
}

// veiled is a line as it may be shown, and what that leaves out.
func veiled(line string, hidden []reeve.Range) (shown, secret string) {
	slices.SortFunc(hidden, func(a, b reeve.Range) int { return cmp.Compare(a.From, b.From) })
	var seen, unseen strings.Builder
	done := 0
	for i, r := range hidden {
		if i == 0 || r.From > done {
			seen.WriteString(line[done:r.From])
			seen.WriteString(reeve.Redacted)
			done = r.From
		}
		if r.To > done {
			unseen.WriteString(line[done:r.To])
			done = r.To
		}
	}
	seen.WriteString(line[done:])
	return seen.String(), unseen.String()
}

const (
	pieceLen   = 4        // characters of a secret that are not shown beside it: the house takes out as many where a text breaks off
	piecesNear = 64 << 10 // pieces beyond which those of secrets that are only near the lines are not noted
)

// pieces are the parts of secrets, of four characters each. What changes in a line with a secret may be the secret, or the word that tells of it: what is left of it then looks like nothing by itself.
type pieces map[string]struct{}

func (p pieces) add(secret string) {
	quads(secret, func(from, to int) {
		if s := secret[from:to]; strings.Trim(s, " \t\r\n-=") != "" { // margins and rules tell nothing
			p[s] = struct{}{}
		}
	})
}

// in finds pieces in a line.
func (p pieces) in(line string) (found []reeve.Range) {
	if len(p) == 0 {
		return nil
	}
	quads(strings.TrimSuffix(line, "\n"), func(from, to int) {
		if _, ok := p[line[from:to]]; !ok {
			return
		}
		if n := len(found); n > 0 && from <= found[n-1].To {
			found[n-1].To = to
		} else {
			found = append(found, reeve.Range{From: from, To: to})
		}
	})
	return found
}

// quads gives every four characters that stand side by side.
func quads(text string, each func(from, to int)) {
	var last [pieceLen]int // where the last characters begin
	n := 0
	for i := range text {
		if n >= pieceLen {
			each(last[n%pieceLen], i)
		}
		last[n%pieceLen] = i
		n++
	}
	if n >= pieceLen {
		each(last[n%pieceLen], len(text))
	}
}
