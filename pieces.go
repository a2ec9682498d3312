package reeve

import (
	"cmp"
	"slices"
	"strings"
)

// pieceLen is how many characters of a secret are not shown beside it: the house takes out as many where a text breaks off.
const pieceLen = 4

// Pieces are the parts of secrets, of four characters each. What changes in a line with a secret may be the secret, or the word that tells of it: what is left of it then looks like nothing by itself.
type Pieces map[string]struct{}

// Add notes the pieces of a secret.
func (p Pieces) Add(secret string) {
	quads(secret, func(from, to int) {
		if s := secret[from:to]; strings.Trim(s, " \t\r\n-=") != "" { // margins and rules tell nothing
			p[s] = struct{}{}
		}
	})
}

// In finds pieces in a line.
func (p Pieces) In(line string) (found []Range) {
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
			found = append(found, Range{From: from, To: to})
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

// Veiled is a line as it may be shown, and what that leaves out.
func Veiled(line string, hidden []Range) (shown, secret string) {
	slices.SortFunc(hidden, func(a, b Range) int { return cmp.Compare(a.From, b.From) })
	var seen, unseen strings.Builder
	done := 0
	for i, r := range hidden {
		if i == 0 || r.From > done {
			seen.WriteString(line[done:r.From])
			seen.WriteString(Redacted)
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
