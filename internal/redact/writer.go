package redact

import (
	"io"
	"strings"
)

// Writer removes secrets from a stream. It passes on whole lines and holds back an unfinished one, an unfinished
// stored value and an unfinished private key until more is written or Close is called. It is not safe for concurrent
// use.
type Writer struct {
	to       io.Writer
	redactor *Redactor
	text     string // what is held back, and before it what was passed on of the same line
	done     int    // how much of text was passed on
}

// NewWriter returns a Writer that passes text without its secrets on to another writer.
func (r *Redactor) NewWriter(to io.Writer) *Writer { return &Writer{to: to, redactor: r} }

// Write passes on what is known to hold no part of a secret, and keeps the rest.
func (w *Writer) Write(p []byte) (int, error) {
	if w.redactor == nil {
		return w.to.Write(p)
	}
	w.text += string(p)
	secrets := w.redactor.Find(w.text)
	safe := strings.LastIndexByte(w.text, '\n') + 1
	safe = max(safe, len(w.text)-Window) // of a very long line the end is enough
	safe = min(safe, w.redactor.stored.open(w.text))
	if w.redactor.formats {
		safe = min(safe, openPrivateKey(w.text))
	}
	if held := len(w.text) - safe; held > maxKeyLen+w.redactor.stored.longest {
		safe = len(w.text) - Window // no secret is that long
	}
	for _, s := range secrets {
		if s.From < safe && safe < s.To {
			safe = s.From
		}
	}
	if safe <= w.done {
		return len(p), nil
	}
	return len(p), w.pass(secrets, safe)
}

// Close passes on what was held back. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.redactor == nil || w.done == len(w.text) {
		return nil
	}
	return w.pass(w.redactor.Find(w.text), len(w.text))
}

// pass writes the text up to a place without the secrets in it.
func (w *Writer) pass(secrets []Range, to int) error {
	var within []Range
	for _, s := range secrets {
		if s.To > w.done && s.To <= to {
			within = append(within, Range{From: max(s.From, w.done) - w.done, To: s.To - w.done})
		}
	}
	_, err := io.WriteString(w.to, Replace(w.text[w.done:to], within))
	keep := to // the rest of a line is judged with what stands before it
	if line := strings.LastIndexByte(w.text[:to], '\n') + 1; line < to {
		keep = max(line, to-Window)
	}
	w.text, w.done = w.text[keep:], to-keep
	return err
}
