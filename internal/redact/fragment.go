package redact

import (
	"cmp"
	"slices"
	"strings"
)

// fragmentLen is the number of characters of a fragment.
const fragmentLen = 4

// Fragments is the set of all sequences of four characters in secrets. If a change edits a secret, the remains in a
// diff are not recognised as a secret, but they contain its fragments.
type Fragments map[string]struct{}

// Add adds the fragments of a secret.
func (f Fragments) Add(secret string) {
	eachFragment(secret, func(from, to int) {
		if s := secret[from:to]; strings.Trim(s, " \t\r\n-=") != "" { // margins and rulers are no part of the secret
			f[s] = struct{}{}
		}
	})
}

// Find returns the ranges of fragments in a line, in order and without overlap.
func (f Fragments) Find(line string) (found []Range) {
	if len(f) == 0 {
		return nil
	}
	eachFragment(strings.TrimSuffix(line, "\n"), func(from, to int) {
		if _, ok := f[line[from:to]]; !ok {
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

// eachFragment calls each with the range of every sequence of four characters.
func eachFragment(text string, each func(from, to int)) {
	var begins [fragmentLen]int // offsets of the last characters
	n := 0
	for i := range text {
		if n >= fragmentLen {
			each(begins[n%fragmentLen], i)
		}
		begins[n%fragmentLen] = i
		n++
	}
	if n >= fragmentLen {
		each(begins[n%fragmentLen], len(text))
	}
}

// Line returns a line with a mark instead of each hidden range, and the text that was hidden. The ranges may overlap.
func Line(line string, hidden []Range) (shown, secret string) {
	slices.SortFunc(hidden, func(a, b Range) int { return cmp.Compare(a.From, b.From) })
	var seen, unseen strings.Builder
	done := 0
	for i, r := range hidden {
		if i == 0 || r.From > done {
			seen.WriteString(line[done:r.From])
			seen.WriteString(Mark)
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
