package mailbox

import (
	"errors"
	"io"
	"strings"

	"reeve"
)

// mostField is how many bytes of a field are kept; the rest is dropped while it is read, so that a quote that is never closed costs no memory.
const mostField = 8 << 20

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
		switch {
		case err != nil:
			line.Bad = "the file could not be read further: " + plainPath(err)
		case len(row) == 1 && row[0] == "":
			continue // an empty line
		case len(row) < len(kinds) && len(row) < 2:
			line.Bad = "the row has fewer fields than there are columns"
		default:
			r := record{text: map[string]string{}}
			for i, v := range row {
				if i < len(kinds) && kinds[i] != "" {
					r.text[kinds[i]] = v
				}
			}
			if cut > 0 {
				r.notes = append(r.notes, "a field is longer than 8 MiB and was cut")
			}
			e, notes, err := f.email(r)
			if line.Notes = notes; err != nil {
				line.Bad = err.Error()
			} else {
				line.Email = &e
			}
		}
		if given := f.step(line, f.in.offset()); given != nil || err != nil {
			return given
		}
	}
}

// csvReader reads rows as spreadsheets write them: fields in quotes may hold commas, line ends and doubled quotes.
type csvReader struct{ in *counter }

// row gives the next row and how many bytes of it were dropped. io.EOF means that there is none.
func (c *csvReader) row() (row []string, cut int64, err error) {
	var b strings.Builder
	quoted, began := false, false
	put := func(ch byte) {
		if b.Len() < mostField {
			b.WriteByte(ch)
		} else {
			cut++
		}
	}
	for {
		ch, err := c.in.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) && (began || len(row) > 0) {
				return append(row, b.String()), cut, nil
			}
			return nil, cut, err
		}
		began = true
		switch {
		case quoted && ch == '"':
			if next, _ := c.in.Peek(1); len(next) == 1 && next[0] == '"' {
				_, _ = c.in.Discard(1)
				put('"')
			} else {
				quoted = false
			}
		case quoted:
			put(ch)
		case ch == '"' && b.Len() == 0:
			quoted = true
		case ch == ',':
			row = append(row, b.String())
			b.Reset()
		case ch == '\n':
			return append(row, strings.TrimSuffix(b.String(), "\r")), cut, nil
		default:
			put(ch)
		}
	}
}
