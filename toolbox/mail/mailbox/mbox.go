package mailbox

import (
	"bytes"
	"io"
	"regexp"

	"reeve"
)

// separator matches the line before each mail, with sender and date. Body lines that begin with "From " are quoted with
// > or do not match.
var separator = regexp.MustCompile(`^From (\S+ .*|\S*)\d{4}.*$|^From \S+\s*$`)

// readMbox reads an mbox file.
func (f *file) readMbox() error {
	m := &mboxReader{in: f.in, afterBlank: true}
	for {
		start, ok := m.next()
		if !ok {
			return nil
		}
		e, notes, err := Message(m)
		_, _ = io.Copy(io.Discard, m) // skip to the next mail
		line := reeve.MailLine{Place: f.position(start), Problems: notes}
		if err != nil {
			line.Error = err.Error()
		} else {
			f.setInbox(&e, f.folders)
			line.Email = &e
		}
		if m.err != nil && m.err != io.EOF {
			line.Problems = append(line.Problems, "the file could not be read further: "+errorWithoutPath(m.err))
		}
		if err := f.yieldAt(line, m.messageStart()); err != nil {
			return err
		}
	}
}

// mboxReader reads the mails of an mbox one after the other. Read returns io.EOF at the end of each mail; next moves to
// the following one.
type mboxReader struct {
	in           *offsetReader
	afterBlank   bool   // the previous line was empty, or this is the first line
	inLongLine   bool   // the previous read ended inside a long line
	pending      []byte // unread rest of the current line
	separatorLen int64  // length of the separator line that was read
	atSeparator  bool   // a separator was read, so the mail is complete
	err          error
}

// messageStart returns the offset of the next mail, including its separator.
func (m *mboxReader) messageStart() int64 { return m.in.offset() - m.separatorLen }

// next moves to the next mail. It skips text before the first mail.
func (m *mboxReader) next() (start int64, ok bool) {
	for !m.atSeparator && m.err == nil {
		m.readLine()
		m.pending = nil
	}
	if !m.atSeparator {
		return 0, false
	}
	start = m.messageStart()
	m.atSeparator, m.separatorLen, m.afterBlank = false, 0, false
	return start, true
}

func (m *mboxReader) Read(b []byte) (int, error) {
	for len(m.pending) == 0 {
		if m.atSeparator {
			return 0, io.EOF
		}
		if m.err != nil {
			return 0, m.err
		}
		m.readLine()
	}
	n := copy(b, m.pending)
	m.pending = m.pending[n:]
	return n, nil
}

// readLine reads a line, or as much of it as fits into the buffer.
func (m *mboxReader) readLine() {
	text, err := m.in.ReadSlice('\n')
	whole := err == nil
	if err != nil && len(text) == m.in.Size() {
		err = nil // the line is longer than the buffer; its end follows
	}
	m.err = err
	start := !m.inLongLine
	m.inLongLine = !whole && err == nil
	if !start {
		m.pending = text
		return
	}
	if m.afterBlank && bytes.HasPrefix(text, []byte("From ")) && separator.Match(bytes.TrimRight(text, "\r\n")) {
		m.atSeparator, m.separatorLen = true, int64(len(text))
		return
	}
	m.afterBlank = len(bytes.TrimRight(text, "\r\n")) == 0
	if quoted := bytes.TrimLeft(text, ">"); len(quoted) < len(text) && bytes.HasPrefix(quoted, []byte("From ")) {
		text = text[1:] // mboxrd quotes the line with one >
	}
	m.pending = text
}
