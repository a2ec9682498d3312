package redact

import (
	"io"
	"strings"
)

// Writer removes secrets from a stream. It writes whole lines and holds back an incomplete line, stored value or
// private key until more is written or Close is called. It is not safe for concurrent use.
type Writer struct {
	to       io.Writer
	redactor *Redactor
	text     string // the current line and the text that is held back
	done     int    // offset up to which text was written
}

// NewWriter returns a Writer that writes to another writer.
func (r *Redactor) NewWriter(to io.Writer) *Writer { return &Writer{to: to, redactor: r} }

// Write writes the text that cannot be a part of a secret and holds the rest back.
func (w *Writer) Write(p []byte) (int, error) {
	if w.redactor == nil {
		return w.to.Write(p)
	}
	w.text += string(p)
	secrets := w.redactor.Find(w.text)
	safe := strings.LastIndexByte(w.text, '\n') + 1
	safe = max(safe, len(w.text)-Window) // hold back only the end of a very long line
	safe = min(safe, w.redactor.stored.findPartial(w.text))
	if w.redactor.formats {
		safe = min(safe, findPartialPrivateKey(w.text))
	}
	if held := len(w.text) - safe; held > maxKeyLen+w.redactor.stored.longest {
		safe = len(w.text) - Window // longer than any secret
	}
	for _, s := range secrets {
		if s.From < safe && safe < s.To {
			safe = s.From
		}
	}
	if safe <= w.done {
		return len(p), nil
	}
	return len(p), w.writeRedacted(secrets, safe)
}

// Close writes the text that was held back. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.redactor == nil || w.done == len(w.text) {
		return nil
	}
	return w.writeRedacted(w.redactor.Find(w.text), len(w.text))
}

// writeRedacted writes the text up to an offset without its secrets.
func (w *Writer) writeRedacted(secrets []Range, to int) error {
	var within []Range
	for _, s := range secrets {
		if s.To > w.done && s.To <= to {
			within = append(within, Range{From: max(s.From, w.done) - w.done, To: s.To - w.done})
		}
	}
	_, err := io.WriteString(w.to, Replace(w.text[w.done:to], within))
	keep := to // keep the start of the current line as context for its rest
	if line := strings.LastIndexByte(w.text[:to], '\n') + 1; line < to {
		keep = max(line, to-Window)
	}
	w.text, w.done = w.text[keep:], to-keep
	return err
}
