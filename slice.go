package reeve

import (
	"strings"
	"unicode/utf8"
)

// Redacted stands where a secret was.
const Redacted = "[REDACTED]"

// Around is how many bytes on either side of a slice are to be looked at for secrets: one of half that length is seen whole, wherever the slice begins and ends.
const Around = 8 << 10

// Range is a part of a text, in bytes.
type Range struct{ From, To int }

// Slice gives a part of a text as it may be shown, and where it then begins and ends. Results are scrubbed one by one, so a part of a secret, or one without
// the word before it that tells of it, would pass unseen. So a slice that would begin within a secret begins before it; one that would end within one ends before it,
// or behind it if there is nothing else in the slice, and all of them are taken out. The text should reach as far as [Around] on both sides.
func (i *Invocation) Slice(text string, from, to int) (begin, end int, shown string) {
	return i.Slices(text)(from, to)
}

// Slices is Slice for several parts of one text, in which secrets are looked for once.
func (i *Invocation) Slices(text string) func(from, to int) (begin, end int, shown string) {
	secrets := i.secrets(text)
	return func(from, to int) (begin, end int, shown string) { return part(text, secrets, from, to) }
}

// Head gives the beginning of a text that is not all there, as it may be shown: at most n bytes, and before that no part of a secret. There is more of it than is shown, or it broke off. Where there
// is more, the text should reach as far as [Around] beyond n. Where it broke off, what begins a known secret at its very end is taken out as well: nothing behind it can tell.
// A tool that cuts what it gives does it with this: results are scrubbed afterwards, and a secret that was cut in two would pass unseen.
func (i *Invocation) Head(text string, n int) string {
	secrets := i.secrets(text)
	if i.Begun != nil {
		if at := i.Begun(text); at < len(text) {
			for k := len(secrets) - 1; k >= 0 && secrets[k].To > at; k-- {
				at, secrets = min(at, secrets[k].From), secrets[:k]
			}
			secrets = append(secrets, Range{From: at, To: len(text)})
		}
	}
	n = min(n, len(text))
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	_, _, shown := part(text, secrets, 0, n)
	return shown
}

func (i *Invocation) secrets(text string) []Range {
	if i.Secrets == nil {
		return nil
	}
	return i.Secrets(text)
}

func part(text string, secrets []Range, from, to int) (begin, end int, shown string) {
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
	return begin, end, Redact(text[begin:end], within)
}

// Redact puts [Redacted] in the place of each of some parts of a text, which are in order and do not overlap.
func Redact(text string, secrets []Range) string {
	if len(secrets) == 0 {
		return text
	}
	var out strings.Builder
	done := 0
	for _, s := range secrets {
		out.WriteString(text[done:s.From])
		out.WriteString(Redacted)
		done = s.To
	}
	out.WriteString(text[done:])
	return out.String()
}
