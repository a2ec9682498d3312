package mailbox

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"reeve"
)

const (
	// maxRowBytes is how many bytes of a row are kept. The rest is dropped while reading, so that an unclosed quote
	// costs no memory.
	maxRowBytes = 8 << 20
	maxFields   = 1000 // fields of a row that are kept, not counting the last
)

// readCSV reads a file whose first line names its columns.
func (f *file) readCSV() error {
	table := &csvReader{in: f.in}
	start := f.in.offset()
	var head []string
	if start == 0 {
		row, _, err := table.readRow()
		if err != nil {
			return f.yieldUnreadable(f.rel, "it is empty")
		}
		head = row
	} else { // the header is at the start of the file
		if _, err := f.f.Seek(0, io.SeekStart); err != nil {
			return f.yieldUnreadable(f.rel, "it cannot be read: %s", errorWithoutPath(err))
		}
		row, _, err := (&csvReader{in: newOffsetReader(f.f, 0)}).readRow()
		if err != nil {
			return f.yieldUnreadable(f.rel, "it is empty")
		}
		head = row
		if _, err := f.f.Seek(start, io.SeekStart); err != nil {
			return f.yieldUnreadable(f.rel, "it cannot be read: %s", errorWithoutPath(err))
		}
		f.in = newOffsetReader(f.f, start)
		table.in = f.in
	}
	kinds, err := parseColumns(head)
	if err != nil {
		return f.yieldUnreadable(f.rel, "%s", err.Error())
	}
	for {
		start := f.in.offset()
		row, cut, err := table.readRow()
		if err == io.EOF {
			return nil
		}
		line := reeve.MailLine{Place: f.position(start)}
		var notes []string
		if errors.Is(err, errQuote) {
			found := false
			if found, err = f.skipToNextRow(table, start, kinds); found || row == nil || cut > 0 {
				line.Error = "a quote in the row is never closed, or closed where no field ends; reading went on at " +
					"the next row that is whole"
			} else {
				notes = append(notes, "the file ends before a quote in the row is closed")
			}
		}
		switch {
		case err != nil:
			line.Error = "the file could not be read further: " + errorWithoutPath(err)
		case line.Error != "":
		case len(row) == 1 && row[0] == "":
			continue // empty line
		case len(row) < len(kinds) && len(row) < 2:
			line.Error = "the row has fewer fields than there are columns"
		default:
			if cut > 0 {
				notes = append(notes, "a row is longer than 8 MiB and was cut")
			}
			var e reeve.Email
			var bad error
			if e, line.Problems, bad = f.parseRow(kinds, row, notes); bad != nil {
				line.Error = bad.Error()
			} else {
				line.Email = &e
			}
		}
		if given := f.yieldAt(line, f.in.offset()); given != nil || err != nil {
			return given
		}
	}
}

// parseRow converts a row to a mail.
func (f *file) parseRow(kinds, row, notes []string) (reeve.Email, []string, error) {
	r := record{text: map[string]string{}, notes: notes}
	for i, v := range row {
		if i < len(kinds) && kinds[i] != "" {
			r.text[kinds[i]] = v
		}
	}
	return f.parseRecord(r)
}

// skipToNextRow moves to the first line after a broken row that begins a complete, valid row. It reports whether there
// is one.
func (f *file) skipToNextRow(table *csvReader, start int64, kinds []string) (found bool, err error) {
	to := func(offset int64) error {
		_, err := f.f.Seek(offset, io.SeekStart)
		f.in = newOffsetReader(f.f, offset)
		table.in = f.in
		return err
	}
	for {
		if err := to(start); err != nil {
			return false, err
		}
		if err := table.skipLine(); err != nil {
			return false, ignoreEOF(err)
		}
		start = f.in.offset()
		row, _, err := table.readRow()
		switch {
		case errors.Is(err, errQuote):
		case err != nil:
			return false, ignoreEOF(err)
		case len(row) == len(kinds):
			if _, _, bad := f.parseRow(kinds, row, nil); bad == nil {
				return true, to(start)
			}
		}
	}
}

// ignoreEOF returns nil for io.EOF.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// csvReader reads rows as spreadsheets write them: quoted fields may contain commas, line ends and doubled quotes.
type csvReader struct{ in *offsetReader }

// errQuote means that a quote is not closed before a comma or the end of a line. A forgotten quote ends at the next
// quote, wherever that is.
var errQuote = errors.New("a quote is not closed")

// readRow returns the next row. It also returns the number of bytes that it dropped because the row is too long. At the
// end of the file it returns io.EOF. If it returns errQuote and a row, the file ends inside the quote.
func (c *csvReader) readRow() (row []string, cut int64, err error) {
	var b strings.Builder
	quoted, began, lines, kept := false, false, false, 0
	put := func(ch byte) {
		if kept < maxRowBytes {
			kept++
			b.WriteByte(ch)
		} else {
			cut++
		}
	}
	for {
		ch, err := c.in.ReadByte()
		if err != nil {
			switch {
			case errors.Is(err, io.EOF) && quoted:
				return append(row, b.String()), cut, errQuote
			case errors.Is(err, io.EOF) && (began || len(row) > 0):
				return append(row, b.String()), cut, nil
			}
			return nil, cut, err
		}
		began = true
		switch {
		case quoted && ch == '"':
			next, _ := c.in.Peek(1)
			switch {
			case len(next) == 1 && next[0] == '"':
				_, _ = c.in.Discard(1)
				put('"')
			case lines && len(next) == 1 && next[0] != ',' && next[0] != '\r' && next[0] != '\n':
				return nil, cut, errQuote
			default:
				quoted = false
			}
		case quoted:
			lines = lines || ch == '\n'
			put(ch)
		case ch == '"' && b.Len() == 0:
			quoted, lines = true, false
		case ch == ',':
			if kept++; len(row) < maxFields {
				row = append(row, b.String())
			}
			b.Reset()
		case ch == '\n':
			return append(row, strings.TrimSuffix(b.String(), "\r")), cut, nil
		default:
			put(ch)
		}
	}
}

// skipLine skips the rest of a line.
func (c *csvReader) skipLine() error {
	for {
		if _, err := c.in.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
