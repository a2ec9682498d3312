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

// file is the file that is being read.
type file struct {
	*reader
	rel     string
	f       *os.File
	folders []string
	in      *offsetReader
}

// offsetReader is a buffered reader that knows its offset in the file.
type offsetReader struct {
	*bufio.Reader
	from *countingReader
}

type countingReader struct {
	r io.Reader
	n int64
}

func (m *countingReader) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	m.n += int64(n)
	return n, err
}

func newOffsetReader(f io.Reader, from int64) *offsetReader {
	m := &countingReader{f, from}
	return &offsetReader{bufio.NewReaderSize(m, 64<<10), m}
}

// offset returns how many bytes of the file were consumed.
func (c *offsetReader) offset() int64 { return c.from.n - int64(c.Buffered()) }

// readSingle reads a file that contains one mail.
func (f *file) readSingle() error {
	e, notes, err := Message(f.in)
	f.at = position{File: f.rel, Offset: -1, N: f.at.N + 1}
	if err != nil {
		return f.yieldLine(reeve.MailLine{Place: f.rel, Error: err.Error(), Problems: notes}, f.bytes+f.in.offset())
	}
	f.setInbox(&e, f.folders)
	return f.yieldLine(reeve.MailLine{Email: &e, Place: f.rel, Problems: notes}, f.bytes+f.in.offset())
}

// yieldAt yields an item of a file with many mails.
func (f *file) yieldAt(line reeve.MailLine, offset int64) error {
	f.at = position{File: f.rel, Offset: offset, Before: hashBefore(f.f, offset), N: f.at.N + 1}
	return f.yieldLine(line, f.bytes+offset)
}

// position returns a place in a file for error messages.
func (f *file) position(offset int64) string { return f.rel + ":" + strconv.FormatInt(offset, 10) }

// setInbox sets the inbox and folder of a mail unless the mail names them itself.
func (f *file) setInbox(e *reeve.Email, folders []string) {
	inbox := ""
	switch {
	case f.nested && len(folders) > 0:
		inbox, folders = folders[0], folders[1:]
	case f.root != "":
		inbox = baseName(f.root)
	default:
		inbox = strings.TrimSuffix(baseName(f.file), path.Ext(f.file))
	}
	e.Inbox = cmp.Or(f.opt.Inbox, e.Inbox, inbox, "mail")
	if e.Inbox = strings.ToValidUTF8(strings.Map(dropControl, e.Inbox), ""); len(e.Inbox) > maxInboxName {
		e.Inbox = strings.ToValidUTF8(e.Inbox[:maxInboxName], "")
	}
	if e.Folder == "" {
		e.Folder = strings.TrimPrefix(strings.Join(folders, "/"), ".")
	}
}

const maxInboxName = 200

func dropControl(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

// baseName returns the name of a file or folder, also for paths such as ".".
func baseName(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		name = abs
	}
	return filepath.Base(name)
}
