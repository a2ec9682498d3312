package redact

import (
	"cmp"
	"slices"
	"strings"
)

// fragmentLen is how many characters of a secret in a row a diff does not show.
const fragmentLen = 4

// Fragments are the runs of four characters that secrets consist of. A diff shows a secret before and after a change:
// what the change leaves of it is not recognised by itself, but by its fragments.
type Fragments map[string]struct{}

// Add adds the fragments of a secret.
func (f Fragments) Add(secret string) {
	eachFragment(secret, func(from, to int) {
		if s := secret[from:to]; strings.Trim(s, " \t\r\n-=") != "" { // margins and rules tell nothing
			f[s] = struct{}{}
		}
	})
}

// Find returns the places of fragments in a line, in order and without overlap.
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

// eachFragment calls each with the place of every run of four characters.
func eachFragment(text string, each func(from, to int)) {
	var begins [fragmentLen]int // of the last characters
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

// Line returns a line with a mark in the place of each of the hidden ranges, which may overlap, and the text that was
// hidden.
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
