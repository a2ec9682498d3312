package gate

import (
	"cmp"
	"slices"
	"strings"

	"reeve"
)

// least is how long a value must be to be looked for.
const least = 4

// needles are the texts that are looked for, all at once: a text is read once however many there are. They are found by their first four bytes.
type needles struct {
	may     [1 << 16]bool // by a hash of the four bytes
	by      map[uint32][]string
	longest int
}

func newNeedles(all []string) *needles {
	n := &needles{by: map[uint32][]string{}}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }) // the longest of those that begin alike comes first
	for _, s := range slices.Compact(all) {
		if len(s) >= least {
			n.longest = max(n.longest, len(s))
			four := firstFour(s)
			n.may[hashFour(four)] = true
			n.by[four] = append(n.by[four], s)
		}
	}
	return n
}

func firstFour(s string) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func hashFour(four uint32) uint32 { return four * 2654435761 >> 16 }

// in finds the needles as they stand in a text.
func (n *needles) in(text string) (found []reeve.Range) {
	if len(n.by) == 0 {
		return nil
	}
	for i := 0; i+least <= len(text); i++ {
		four := firstFour(text[i:])
		if !n.may[hashFour(four)] {
			continue
		}
		for _, s := range n.by[four] {
			if !strings.HasPrefix(text[i:], s) {
				continue
			}
			if k := len(found); k > 0 && i < found[k-1].To { // they overlap
				found[k-1].To = max(found[k-1].To, i+len(s))
			} else {
				found = append(found, reeve.Range{From: i, To: i + len(s)})
			}
			break
		}
	}
	return found
}

// layers is how often a text is looked behind: JSON within JSON within an address, say.
const layers = 4

// spelt finds the needles however a text escapes their characters, some or all, for JSON, HTML or an address: it looks at the text, and at what the
// text says, and at what that says.
func (n *needles) spelt(text string) []reeve.Range {
	if len(n.by) == 0 {
		return nil
	}
	found := n.in(text)
	var behind [][]escaped
	for range layers {
		said, escapes := unescape(text)
		if len(escapes) == 0 {
			break
		}
		text, behind = said, append(behind, escapes)
		for _, r := range n.in(text) {
			for _, escapes := range slices.Backward(behind) {
				r = inSource(r, escapes)
			}
			found = append(found, r)
		}
	}
	return union(found)
}
