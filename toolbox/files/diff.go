package files

import (
	"fmt"
	"math"
	"strings"

	"reeve"
	"reeve/internal/redact"
)

const (
	diffContext = 3
	// how far apart two texts may be before their difference is shown as one block, which is exact too
	diffEffort = 400
)

// edit is one line of a difference: ' ' kept, '-' removed, '+' added.
type edit struct {
	op   byte
	line string
}

// secretChanges follows a hunk in which a secret becomes another: both look the same.
const secretChanges = "\\ What is " + reeve.Redacted + " is not the same before and after\n"

// block is a hunk of a diff: some edits, and how many lines come before them and are in them, in both texts.
type block struct {
	edits         []edit
	oldAt, oldLen int
	newAt, newLen int
	before, after [][]redact.Range // what is secret in its lines
}

// unified gives the unified diff of two texts without the secrets in it, line by line; nothing when they are equal. ok
// is false when it is longer than a caller is shown. A person who decides on the change is shown all of it.
func unified(inv *reeve.Invocation, from, to, a, b string) (diff string, ok bool) {
	most := diffMost
	if inv.Decides {
		most = math.MaxInt
	}
	was, is := lines(a), lines(b)
	blocks, ok := blocks(compare(was, is), most)
	if len(blocks) == 0 || !ok {
		return "", ok
	}
	fragments := redact.Fragments{}
	for i, h := range blocks {
		blocks[i].before = hiddenInLines(inv, was, h.oldAt, h.oldLen, fragments)
		blocks[i].after = hiddenInLines(inv, is, h.newAt, h.newLen, fragments)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", from, to)
	for _, h := range blocks {
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(h.oldAt, h.oldLen), span(h.newAt, h.newLen))
		h.write(&out, fragments)
	}
	return out.String(), out.Len() <= most
}

// blocks puts changes into hunks. ok is false when they have more than so many bytes, before anybody looks through them
// for secrets.
func blocks(edits []edit, most int) (all []block, ok bool) {
	oldAt, newAt, size := 0, 0, 0 // lines before the hunk, and the bytes of all
	for i := 0; i < len(edits); {
		if edits[i].op == ' ' {
			i, oldAt, newAt = i+1, oldAt+1, newAt+1
			continue
		}
		start, end := hunk(edits, i)
		h := block{edits: edits[start:end], oldAt: oldAt - (i - start), newAt: newAt - (i - start)}
		for _, e := range h.edits {
			if e.op != '+' {
				h.oldLen++
			}
			if e.op != '-' {
				h.newLen++
			}
			size += len(e.line)
		}
		if size > most {
			return nil, false
		}
		all = append(all, h)
		oldAt, newAt, i = h.oldAt+h.oldLen, h.newAt+h.newLen, end
	}
	return all, true
}

// write writes the lines of a hunk without the secrets before and after the change, and without fragments of them.
func (h block) write(out *strings.Builder, fragments redact.Fragments) {
	var gone, come strings.Builder // what is secret in lines that change
	before, after := h.before, h.after
	for _, e := range h.edits {
		var hidden []redact.Range
		if e.op != '+' {
			hidden, before = append(hidden, before[0]...), before[1:]
		}
		if e.op != '-' {
			hidden, after = append(hidden, after[0]...), after[1:]
		}
		line, secret := redact.Line(e.line, append(hidden, fragments.Find(e.line)...))
		switch e.op {
		case '-':
			gone.WriteString(secret)
		case '+':
			come.WriteString(secret)
		}
		out.WriteByte(e.op)
		out.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
	if gone.Len() > 0 && come.Len() > 0 && gone.String() != come.String() {
		out.WriteString(secretChanges)
	}
}

// hunk finds where the hunk around a changed line begins and ends: changes closer than two contexts share one.
func hunk(edits []edit, at int) (start, end int) {
	start = at
	for start > 0 && at-start < diffContext && edits[start-1].op == ' ' {
		start--
	}
	last := at
	for end = at; end < len(edits) && end-last <= 2*diffContext; end++ {
		if edits[end].op != ' ' {
			last = end
		}
	}
	return start, min(last+1+diffContext, len(edits))
}

func span(before, n int) string {
	if n == 0 {
		return fmt.Sprintf("%d,0", before)
	}
	if n == 1 {
		return fmt.Sprint(before + 1)
	}
	return fmt.Sprintf("%d,%d", before+1, n)
}

// lines cuts a text after each newline.
func lines(s string) []string {
	all := strings.SplitAfter(s, "\n")
	if last := len(all) - 1; all[last] == "" { // the text is empty or ends with a newline
		all = all[:last]
	}
	return all
}

// compare gives the difference of two texts: what they share at both ends, and the shortest difference in between.
func compare(a, b []string) []edit {
	var head, tail int
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	out := make([]edit, 0, len(a)+len(b)-head-tail)
	for _, l := range a[:head] {
		out = append(out, edit{' ', l})
	}
	out = append(out, middle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, l := range a[len(a)-tail:] {
		out = append(out, edit{' ', l})
	}
	return out
}

// middle is Myers' greedy algorithm, given up after diffEffort steps.
func middle(a, b []string) []edit {
	effort := min(len(a)+len(b), diffEffort)
	off := effort + 1
	v := make([]int, 2*off+1) // how far into a each diagonal got
	var trace [][]int
	for d := 0; d <= effort; d++ {
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
	out := make([]edit, 0, len(a)+len(b))
	for _, l := range a {
		out = append(out, edit{'-', l})
	}
	for _, l := range b {
		out = append(out, edit{'+', l})
	}
	return out
}

// backtrack reads the shortest way off the trace, from the end.
func backtrack(a, b []string, trace [][]int, off int) []edit {
	var out []edit
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
			out = append(out, edit{' ', a[x]})
		}
		switch {
		case d == 0:
		case x == px:
			y--
			out = append(out, edit{'+', b[y]})
		default:
			x--
			out = append(out, edit{'-', a[x]})
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}
