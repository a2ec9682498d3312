package mailbox

import (
	"bufio"
	"cmp"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"reeve"
)

// file is one file that is being read.
type file struct {
	*reader
	rel     string
	f       *os.File
	folders []string
	in      *counter
}

// counter knows how far a file was read.
type counter struct {
	*bufio.Reader
	from *meter
}

type meter struct {
	r io.Reader
	n int64
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	m.n += int64(n)
	return n, err
}

func newCounter(f io.Reader, from int64) *counter {
	m := &meter{f, from}
	return &counter{bufio.NewReaderSize(m, 64<<10), m}
}

// offset is how many bytes were taken.
func (c *counter) offset() int64 { return c.from.n - int64(c.Buffered()) }

// single reads a file that is one mail.
func (f *file) single() error {
	e, notes, err := Message(f.in)
	f.at = place{File: f.rel, Offset: -1, N: f.at.N + 1}
	if err != nil {
		return f.give(reeve.MailLine{Place: f.rel, Bad: err.Error(), Notes: notes}, f.bytes+f.in.offset())
	}
	f.address(&e, f.folders)
	return f.give(reeve.MailLine{Email: &e, Place: f.rel, Notes: notes}, f.bytes+f.in.offset())
}

// step gives what was read of a file of many mails.
func (f *file) step(line reeve.MailLine, offset int64) error {
	f.at = place{File: f.rel, Offset: offset, Before: tail(f.f, offset), N: f.at.N + 1}
	return f.give(line, f.bytes+offset)
}

// spot names a place in a file for people.
func (f *file) spot(offset int64) string { return f.rel + ":" + strconv.FormatInt(offset, 10) }

// address says which inbox and folder a mail belongs to, unless it says so itself.
func (f *file) address(e *reeve.Email, folders []string) {
	inbox := ""
	switch {
	case f.nested && len(folders) > 0:
		inbox, folders = folders[0], folders[1:]
	case f.root != "":
		inbox = base(f.root)
	default:
		inbox = strings.TrimSuffix(base(f.file), path.Ext(f.file))
	}
	e.Inbox = cmp.Or(f.opt.Inbox, e.Inbox, inbox, "mail")
	if e.Inbox = strings.ToValidUTF8(strings.Map(printable, e.Inbox), ""); len(e.Inbox) > mostInbox {
		e.Inbox = strings.ToValidUTF8(e.Inbox[:mostInbox], "")
	}
	if e.Folder == "" {
		e.Folder = strings.TrimPrefix(strings.Join(folders, "/"), ".")
	}
}

const mostInbox = 200

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

// base is the name of a file or folder, whatever way it was written.
func base(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		name = abs
	}
	return filepath.Base(name)
}
