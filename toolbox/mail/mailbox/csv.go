package mailbox

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"reeve"
)

const (
	// bytes of a row that are kept; the rest is dropped while it is read, so that a quote that is never closed costs no
	// memory
	mostRow    = 8 << 20
	mostFields = 1000 // fields of a row that are kept, one more for the last
)

// csv reads a file whose first line names its columns.
func (f *file) csv() error {
	table := &csvReader{in: f.in}
	start := f.in.offset()
	var head []string
	if start == 0 {
		row, _, err := table.row()
		if err != nil {
			return f.bad(f.rel, "it is empty")
		}
		head = row
	} else { // the head is where the file begins
		if _, err := f.f.Seek(0, io.SeekStart); err != nil {
			return f.bad(f.rel, "it cannot be read: %s", plainPath(err))
		}
		row, _, err := (&csvReader{in: newCounter(f.f, 0)}).row()
		if err != nil {
			return f.bad(f.rel, "it is empty")
		}
		head = row
		if _, err := f.f.Seek(start, io.SeekStart); err != nil {
			return f.bad(f.rel, "it cannot be read: %s", plainPath(err))
		}
		f.in = newCounter(f.f, start)
		table.in = f.in
	}
	kinds, err := columns(head)
	if err != nil {
		return f.bad(f.rel, "%s", err.Error())
	}
	for {
		start := f.in.offset()
		row, cut, err := table.row()
		if err == io.EOF {
			return nil
		}
		line := reeve.MailLine{Place: f.spot(start)}
		var notes []string
		if errors.Is(err, errQuote) {
			found := false
			if found, err = f.resync(table, start, kinds); found || row == nil || cut > 0 {
				line.Bad = "a quote in the row is never closed, or closed where no field ends; reading went on at " +
					"the next row that is whole"
			} else {
				notes = append(notes, "the file ends before a quote in the row is closed")
			}
		}
		switch {
		case err != nil:
			line.Bad = "the file could not be read further: " + plainPath(err)
		case line.Bad != "":
		case len(row) == 1 && row[0] == "":
			continue // an empty line
		case len(row) < len(kinds) && len(row) < 2:
			line.Bad = "the row has fewer fields than there are columns"
		default:
			if cut > 0 {
				notes = append(notes, "a row is longer than 8 MiB and was cut")
			}
			var e reeve.Email
			var bad error
			if e, line.Notes, bad = f.rowEmail(kinds, row, notes); bad != nil {
				line.Bad = bad.Error()
			} else {
				line.Email = &e
			}
		}
		if given := f.step(line, f.in.offset()); given != nil || err != nil {
			return given
		}
	}
}

// rowEmail makes a mail of a row.
func (f *file) rowEmail(kinds, row, notes []string) (reeve.Email, []string, error) {
	r := record{text: map[string]string{}, notes: notes}
	for i, v := range row {
		if i < len(kinds) && kinds[i] != "" {
			r.text[kinds[i]] = v
		}
	}
	return f.email(r)
}

// resync goes to the first line behind a broken row with which a row begins that is whole and a mail, if there is one.
// Lines between them are of the broken one.
func (f *file) resync(table *csvReader, start int64, kinds []string) (found bool, err error) {
	to := func(offset int64) error {
		_, err := f.f.Seek(offset, io.SeekStart)
		f.in = newCounter(f.f, offset)
		table.in = f.in
		return err
	}
	for {
		if err := to(start); err != nil {
			return false, err
		}
		if err := table.line(); err != nil {
			return false, unlessEnd(err)
		}
		start = f.in.offset()
		row, _, err := table.row()
		switch {
		case errors.Is(err, errQuote):
		case err != nil:
			return false, unlessEnd(err)
		case len(row) == len(kinds):
			if _, _, bad := f.rowEmail(kinds, row, nil); bad == nil {
				return true, to(start)
			}
		}
	}
}

// unlessEnd is nil where a file merely ends.
func unlessEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// csvReader reads rows as spreadsheets write them: fields in quotes may hold commas, line ends and doubled quotes.
type csvReader struct{ in *counter }

// errQuote means that a row begins a quote and does not end it as one does: before a comma or the end of a line. One
// that was forgotten ends at the next, wherever that is.
var errQuote = errors.New("a quote is not closed")

// row gives the next row and how many bytes of it were dropped. io.EOF means that there is none, errQuote with a row
// that the file ends in it.
func (c *csvReader) row() (row []string, cut int64, err error) {
	var b strings.Builder
	quoted, began, lines, kept := false, false, false, 0
	put := func(ch byte) {
		if kept < mostRow {
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
			if kept++; len(row) < mostFields {
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

// line passes over what is left of a line.
func (c *csvReader) line() error {
	for {
		if _, err := c.in.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
