package files

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"reeve"
)

// margin is how much of a text is looked at on either side of a cut, and how far a cut moves: a secret of that length is seen whole.
const margin = 4 << 10

// seam finds where a text may be cut. Results are scrubbed one by one, so a secret that one ends and the next begins with would pass unseen: a cut
// that parts one is moved.
type seam struct {
	text  []byte
	first bool // the text begins where the file does
	last  bool // and ends where it does
	parts func(before, after string) bool
}

// clean tells whether the text may be cut at i.
func (s seam) clean(i int) bool {
	if s.parts == nil || i == 0 && s.first || i == len(s.text) && s.last {
		return true
	}
	return !s.parts(string(s.text[max(0, i-margin):i]), string(s.text[i:min(len(s.text), i+margin)]))
}

// span moves the two ends of a slice to where they part nothing: its beginning back if that can be, and its end so that the next slice goes on further down.
func (s seam) span(from, to int) (int, int, bool) {
	begin, ok := s.before(from, -1)
	if !ok {
		begin, ok = s.after(from)
	}
	if !ok || to == from && begin == from {
		return from, to, ok
	}
	end, ok := s.before(to, max(begin, from))
	if !ok {
		end, ok = s.after(max(to, begin))
	}
	return begin, end, ok
}

// before gives a place to cut at or before i, and beyond floor; after gives one at or after i.
func (s seam) before(i, floor int) (int, bool) { return s.find(i, -1, floor) }

func (s seam) after(i int) (int, bool) { return s.find(i, 1, -1) }

// find tries i, then places further and further away in one direction, each where a line or a word begins, and then all that are near.
func (s seam) find(i, direction, floor int) (int, bool) {
	tried := func(j int) bool {
		whole := j >= 0 && j <= len(s.text) && (j == len(s.text) || utf8.RuneStart(s.text[j]))
		return whole && j > floor && s.clean(j)
	}
	if tried(i) {
		return i, true
	}
	for d := 1; d <= margin; d *= 2 {
		j := s.on(min(i+d, len(s.text)))
		if direction < 0 {
			j = s.back(max(i-d, 0))
		}
		if tried(j) {
			return j, true
		}
	}
	for d := 1; d <= 64; d++ {
		if j := i + d*direction; tried(j) {
			return j, true
		}
	}
	return i, false
}

// back goes from i to where its line begins, or else its word, if that is near.
func (s seam) back(i int) int {
	near := s.text[max(0, i-256):i]
	if n := bytes.LastIndexByte(near, '\n'); n >= 0 {
		return i - len(near) + n + 1
	}
	if n := bytes.LastIndexFunc(near, unicode.IsSpace); n >= 0 {
		_, size := utf8.DecodeRune(near[n:])
		return i - len(near) + n + size
	}
	for i > 0 && i < len(s.text) && !utf8.RuneStart(s.text[i]) {
		i--
	}
	return i
}

// on goes from i to where the next line begins, or else the next word, if that is near.
func (s seam) on(i int) int {
	near := s.text[i:min(len(s.text), i+256)]
	if n := bytes.IndexByte(near, '\n'); n >= 0 {
		return i + n + 1
	}
	if n := bytes.IndexFunc(near, unicode.IsSpace); n >= 0 {
		_, size := utf8.DecodeRune(near[n:])
		return i + n + size
	}
	for i < len(s.text) && !utf8.RuneStart(s.text[i]) {
		i++
	}
	return i
}

func noSeam(v vpath) error {
	return reeve.Errorf(reeve.ToolFailed, "%s cannot be cut there without parting what must not be shown", v).Hintf("read it from another offset, or with a larger limit")
}
