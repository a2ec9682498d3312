package reeve

import "reeve/internal/redact"

// Redacted replaces a secret in what tools return. A call that changes something is refused if its arguments contain
// it.
const Redacted = redact.Mark

// RedactWindow is how many bytes on either side of a part of a text [Invocation.RedactedSlice] and
// [Invocation.RedactedHead] need to see.
const RedactWindow = redact.Window

// RedactedSlice returns the part of text between from and to without secrets, and where that part then begins and
// ends. A slice that would begin or end within a secret begins before it and ends outside it. A tool that returns
// parts of a text must use it: the gate cannot recognise a part of a secret. The text should reach [RedactWindow]
// bytes beyond the part on both sides.
func (i *Invocation) RedactedSlice(text string, from, to int) (begin, end int, shown string) {
	return i.Redactor.Slice(text, from, to)
}

// RedactedSlices is RedactedSlice for several parts of one text.
func (i *Invocation) RedactedSlices(text string) func(from, to int) (begin, end int, shown string) {
	return i.Redactor.Slices(text)
}

// RedactedHead returns at most the first n bytes of a text that is incomplete, without secrets and without the
// beginning of one at its end. Where there is more, the text should reach [RedactWindow] bytes beyond n.
func (i *Invocation) RedactedHead(text string, n int) string { return i.Redactor.Head(text, n) }
