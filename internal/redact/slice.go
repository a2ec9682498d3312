package redact

import "unicode/utf8"

// Slice returns the part of text between from and to without secrets, and the offsets of the part that it covers. A
// slice never contains a part of a secret. If from is within a secret, the slice begins before the secret. If to is
// within a secret, the slice ends before the secret, or after it if the slice would be empty otherwise. The text should
// include Window bytes of context on both sides of the part.
func (r *Redactor) Slice(text string, from, to int) (begin, end int, shown string) {
	return r.Slices(text)(from, to)
}

// Slices is like Slice for several parts of one text. It searches the text for secrets only once.
func (r *Redactor) Slices(text string) func(from, to int) (begin, end int, shown string) {
	secrets := r.Find(text)
	return func(from, to int) (begin, end int, shown string) { return slice(text, secrets, from, to) }
}

// Head returns at most the first n bytes of an incomplete text, without secrets. The text should include Window bytes
// of context after n, if there are as many. Head also removes a secret that is cut off by the end of the text.
func (r *Redactor) Head(text string, n int) string {
	secrets := r.Find(text)
	if at := r.PartialSecretAt(text); at < len(text) {
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
