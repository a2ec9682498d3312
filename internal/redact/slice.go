package redact

import "unicode/utf8"

// Slice returns the part of text between from and to without secrets, and where that part then begins and ends. A
// slice never holds a part of a secret: one that would begin within a secret begins before it; one that would end
// within a secret ends before it, or behind it if the slice holds nothing else. The text should reach Window bytes
// beyond the part on both sides.
func (r *Redactor) Slice(text string, from, to int) (begin, end int, shown string) {
	return r.Slices(text)(from, to)
}

// Slices is Slice for several parts of one text, which it searches once.
func (r *Redactor) Slices(text string) func(from, to int) (begin, end int, shown string) {
	secrets := r.Find(text)
	return func(from, to int) (begin, end int, shown string) { return slice(text, secrets, from, to) }
}

// Head returns at most the first n bytes of a text that is incomplete, without secrets. Where there is more, the text
// should reach Window bytes beyond n. Where it breaks off, the beginning of a secret at its end is removed as well.
func (r *Redactor) Head(text string, n int) string {
	secrets := r.Find(text)
	if at := r.Open(text); at < len(text) {
		for k := len(secrets) - 1; k >= 0 && secrets[k].To > at; k-- {
			at, secrets = min(at, secrets[k].From), secrets[:k]
		}
		secrets = append(secrets, Range{From: at, To: len(text)})
	}
	n = min(n, len(text))
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	_, _, shown := slice(text, secrets, 0, n)
	return shown
}

func slice(text string, secrets []Range, from, to int) (begin, end int, shown string) {
	begin, end = from, to
	for _, s := range secrets {
		if s.From < from && from < s.To {
			begin = s.From
		}
		if s.From < to && to < s.To {
			if end = s.To; s.From > from {
				end = s.From
			}
		}
	}
	within := make([]Range, 0, len(secrets))
	for _, s := range secrets {
		if s.From >= begin && s.To <= end {
			within = append(within, Range{From: s.From - begin, To: s.To - begin})
		}
	}
	return begin, end, Replace(text[begin:end], within)
}
