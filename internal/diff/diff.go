package diff

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// contextLines is how many unchanged lines surround the changes of a hunk.
	contextLines = 3
	// maxEdits is how many deletions and insertions Compare tries before it gives up on the shortest difference.
	maxEdits = 400
)

// Op says what happens to a line. Its value is the first character of the line in a unified diff.
type Op byte

// The operations.
const (
	Keep   Op = ' '
	Delete Op = '-'
	Insert Op = '+'
)

// Edit is one line of a difference. The line includes its newline, if it has one.
type Edit struct {
	Op   Op
	Line string
}

// Hunk is a run of edits with their context.
type Hunk struct {
	Edits              []Edit
	OldStart, OldLines int // lines of the old text before the hunk, and in it
	NewStart, NewLines int // lines of the new text before the hunk, and in it
}

// Header returns the line "@@ -2,7 +2,7 @@" that precedes the hunk in a unified diff, without a newline.
func (h Hunk) Header() string {
	return fmt.Sprintf("@@ -%s +%s @@", formatRange(h.OldStart, h.OldLines), formatRange(h.NewStart, h.NewLines))
}

func formatRange(start, lines int) string {
	switch lines {
	case 0:
		return fmt.Sprintf("%d,0", start)
	case 1:
		return fmt.Sprint(start + 1)
	}
	return fmt.Sprintf("%d,%d", start+1, lines)
}

// SplitLines splits s after each newline. It returns no lines for an empty text.
func SplitLines(s string) []string {
	all := strings.SplitAfter(s, "\n")
	if last := len(all) - 1; all[last] == "" { // s is empty or ends with a newline
		all = all[:last]
	}
	return all
}

// Compare returns the edits that turn the lines a into the lines b. Keep and Delete edits, in order, have the lines of
// a; Keep and Insert edits have those of b.
func Compare(a, b []string) []Edit {
	var head, tail int
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	out := make([]Edit, 0, len(a)+len(b)-head-tail)
	for _, l := range a[:head] {
		out = append(out, Edit{Keep, l})
	}
	out = append(out, compareMiddle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, l := range a[len(a)-tail:] {
		out = append(out, Edit{Keep, l})
	}
	return out
}

// compareMiddle runs Myers' greedy algorithm for up to maxEdits steps. After that it deletes all of a and inserts all
// of b.
func compareMiddle(a, b []string) []Edit {
	limit := min(len(a)+len(b), maxEdits)
	off := limit + 1
	v := make([]int, 2*off+1) // v[off+k] is the furthest position in a that diagonal k has reached
	var trace [][]int
	for d := 0; d <= limit; d++ {
		trace = append(trace, append([]int(nil), v...))
		for k := -d; k <= d; k += 2 {
			x := v[off+k-1] + 1
			if k == -d || (k != d && v[off+k-1] < v[off+k+1]) {
				x = v[off+k+1]
			}
			for x < len(a) && x-k < len(b) && x-k >= 0 && a[x] == b[x-k] {
				x++
			}
			if v[off+k] = x; x >= len(a) && x-k >= len(b) {
				return backtrack(a, b, trace, off)
			}
		}
	}
	out := make([]Edit, 0, len(a)+len(b))
	for _, l := range a {
		out = append(out, Edit{Delete, l})
	}
	for _, l := range b {
		out = append(out, Edit{Insert, l})
	}
	return out
}

// backtrack returns the edits of the shortest path that trace, the values of v before each step, leads to.
func backtrack(a, b []string, trace [][]int, off int) []Edit {
	var out []Edit
	x, y := len(a), len(b)
	for d := len(trace) - 1; d >= 0; d-- {
		v, k := trace[d], x-y
		prev := k - 1
		if k == -d || (k != d && v[off+k-1] < v[off+k+1]) {
			prev = k + 1
		}
		px := v[off+prev]
		py := px - prev
		if d == 0 {
			px, py = 0, 0
		}
		for x > px && y > py {
			x, y = x-1, y-1
			out = append(out, Edit{Keep, a[x]})
		}
		switch {
		case d == 0:
		case x == px:
			y--
			out = append(out, Edit{Insert, b[y]})
		default:
			x--
			out = append(out, Edit{Delete, a[x]})
		}
	}
	slices.Reverse(out)
	return out
}

// Hunks groups edits into hunks. Changes that are at most six lines apart share a hunk. ok is false if the lines of all
// hunks have more than maxBytes bytes.
func Hunks(edits []Edit, maxBytes int) (hunks []Hunk, ok bool) {
	oldAt, newAt, size := 0, 0, 0
	for i := 0; i < len(edits); {
		if edits[i].Op == Keep {
			i, oldAt, newAt = i+1, oldAt+1, newAt+1
			continue
		}
		start, end := hunkBounds(edits, i)
		h := Hunk{Edits: edits[start:end], OldStart: oldAt - (i - start), NewStart: newAt - (i - start)}
		for _, e := range h.Edits {
			if e.Op != Insert {
				h.OldLines++
			}
			if e.Op != Delete {
				h.NewLines++
			}
			size += len(e.Line)
		}
		if size > maxBytes {
			return nil, false
		}
		hunks = append(hunks, h)
		oldAt, newAt, i = h.OldStart+h.OldLines, h.NewStart+h.NewLines, end
	}
	return hunks, true
}

// hunkBounds returns the edits [start, end) of the hunk whose first change is edits[at].
func hunkBounds(edits []Edit, at int) (start, end int) {
	start = at
	for start > 0 && at-start < contextLines && edits[start-1].Op == Keep {
		start--
	}
	last := at
	for end = at; end < len(edits) && end-last <= 2*contextLines; end++ {
		if edits[end].Op != Keep {
			last = end
		}
	}
	return start, min(last+1+contextLines, len(edits))
}
