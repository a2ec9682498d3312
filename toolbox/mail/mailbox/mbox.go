package mailbox

import (
	"bytes"
	"io"
	"regexp"

	"reeve"
)

// separator is the line before each mail: who, and when. Text that begins a line with From has a > before it, or does
// not look like this.
var separator = regexp.MustCompile(`^From (\S+ .*|\S*)\d{4}.*$|^From \S+\s*$`)

// mbox reads a file of many mails.
func (f *file) mbox() error {
	m := &letters{in: f.in, blank: true}
	for {
		start, ok := m.next()
		if !ok {
			return nil
		}
		e, notes, err := Message(m)
		_, _ = io.Copy(io.Discard, m) // up to the next one
		line := reeve.MailLine{Place: f.spot(start), Notes: notes}
		if err != nil {
			line.Bad = err.Error()
		} else {
			f.address(&e, f.folders)
			line.Email = &e
		}
		if m.err != nil && m.err != io.EOF {
			line.Notes = append(line.Notes, "the file could not be read further: "+plainPath(m.err))
		}
		if err := f.step(line, m.start()); err != nil {
			return err
		}
	}
}

// letters gives the mails of an mbox, one after the other: each Read ends where the next mail begins.
type letters struct {
	in     *counter
	blank  bool   // the line before was empty, or there was none
	middle bool   // the line before was longer than the buffer, and goes on
	left   []byte // of a line that did not fit
	sep    int64  // bytes of the separator that was met
	met    bool   // it was met: the mail is over
	err    error
}

// start is where the next mail begins, with its separator.
func (m *letters) start() int64 { return m.in.offset() - m.sep }

// next goes to the next mail. Text before the first is passed over.
func (m *letters) next() (start int64, ok bool) {
	for !m.met && m.err == nil {
		m.line()
		m.left = nil
	}
	if !m.met {
		return 0, false
	}
	start = m.start()
	m.met, m.sep, m.blank = false, 0, false
	return start, true
}

func (m *letters) Read(b []byte) (int, error) {
	for len(m.left) == 0 {
		if m.met {
			return 0, io.EOF
		}
		if m.err != nil {
			return 0, m.err
		}
		m.line()
	}
	n := copy(b, m.left)
	m.left = m.left[n:]
	return n, nil
}

// line takes a line, or as much of it as fits.
func (m *letters) line() {
	text, err := m.in.ReadSlice('\n')
	whole := err == nil
	if err != nil && len(text) == m.in.Size() {
		err = nil // a long line
	}
	m.err = err
	start := !m.middle
	m.middle = !whole && err == nil
	if !start {
		m.left = text
		return
	}
	if m.blank && bytes.HasPrefix(text, []byte("From ")) && separator.Match(bytes.TrimRight(text, "\r\n")) {
		m.met, m.sep = true, int64(len(text))
		return
	}
	m.blank = len(bytes.TrimRight(text, "\r\n")) == 0
	if quoted := bytes.TrimLeft(text, ">"); len(quoted) < len(text) && bytes.HasPrefix(quoted, []byte("From ")) {
		text = text[1:] // mboxrd: one > was put before it
	}
	m.left = text
}
