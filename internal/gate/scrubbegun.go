package gate

import (
	"slices"
	"strings"

	"reeve"
)

// begun gives where a secret begins that a text broke off in: one that is known, or of a well-known form. If there is none, it gives the text's length. Less than four characters of one
// could be anything, and are left.
func (s *scrubber) begun(text string) int {
	far := max(0, len(text)-reeve.Around) // no further is looked for a longer one elsewhere
	return far + min(s.known.begun(text[far:]), beginsForm(text[far:]))
}

// begun looks at the end of a text, and behind its escapes, of which the last may be broken off as well.
func (n *needles) begun(text string) int {
	first := len(text)
	if len(n.by) == 0 {
		return first
	}
	said := text
	var behind [][]escaped
	for {
		half := withoutHalf(said)
		for _, end := range []string{said, half, withoutHalf(half)} {
			at, ok := n.ends(end)
			if !ok {
				continue
			}
			r := reeve.Range{From: at, To: len(said)}
			for _, escapes := range slices.Backward(behind) {
				r = inSource(r, escapes)
			}
			first = min(first, r.From)
		}
		next, escapes := unescape(said)
		if len(escapes) == 0 || len(behind) == layers {
			return first
		}
		said, behind = next, append(behind, escapes)
	}
}

// ends gives where a needle begins that goes on beyond a text's end.
func (n *needles) ends(text string) (at int, ok bool) {
	for i := max(0, len(text)-n.longest); i+least <= len(text); i++ {
		four := firstFour(text[i:])
		if !n.may[hashFour(four)] {
			continue
		}
		for _, s := range n.by[four] {
			if strings.HasPrefix(s, text[i:]) {
				return i, true
			}
		}
	}
	return 0, false
}

// withoutHalf takes the beginning of an escape off a text's end: \u00 of \u00e9, %C of %C3, &am of &amp; or the first of the two that a character may need.
func withoutHalf(text string) string {
	i := len(text)
	for i > 0 && len(text)-i < len(`\u000`) && (isLetter(text[i-1]|0x20) || isDigit(text[i-1]) || text[i-1] == '#') {
		i--
	}
	if i == 0 || strings.IndexByte(`\%&`, text[i-1]) < 0 {
		return text
	}
	if _, escapes := unescape(text[i-1:]); len(escapes) > 0 {
		return text
	}
	return text[:i-1]
}

// beginsForm gives where a key of a well-known form begins that goes on beyond a text's end, or the text's length.
func beginsForm(text string) int {
	start := len(text)
	for start > 0 && keyChars[text[start-1]] {
		start--
	}
	run := text[start:]
	for i := range len(run) {
		if i > 0 && strings.IndexByte("=:/.", run[i-1]) < 0 {
			continue
		}
		for _, f := range forms {
			if strings.HasPrefix(run[i:], f.prefix) && len(run)-i > least {
				return start + i
			}
		}
	}
	return len(text)
}
