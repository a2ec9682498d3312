package mailbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"reeve"
)

// maxLineBytes is the maximum length of a JSON line.
const maxLineBytes = 16 << 20

// readJSONL reads a file with one JSON object per line.
func (f *file) readJSONL() error {
	for {
		start := f.in.offset()
		text, err := f.readLine()
		if len(text) == 0 && err == io.EOF {
			return nil
		}
		line := reeve.MailLine{Place: f.position(start)}
		switch {
		case text == nil && err != nil && err != io.EOF:
			line.Error = "the file could not be read further: " + errorWithoutPath(err)
		case text == nil:
			line.Error = "the line is longer than 16 MiB"
		case len(bytes.TrimSpace(text)) == 0:
			if err == io.EOF {
				return nil
			}
			continue
		default:
			r, bad := jsonRecord(text)
			if bad == nil {
				var e reeve.Email
				if e, line.Problems, bad = f.parseRecord(r); bad == nil {
					line.Email = &e
				}
			}
			if bad != nil {
				line.Error = bad.Error()
			}
		}
		if given := f.yieldAt(line, f.in.offset()); given != nil || err != nil {
			return given
		}
	}
}

// readLine returns the next line. It skips a line that is too long and returns nil for it.
func (f *file) readLine() ([]byte, error) {
	line := []byte{}
	for {
		part, err := f.in.ReadSlice('\n')
		if line != nil {
			if line = append(line, part...); len(line) > maxLineBytes {
				line = nil
			}
		}
		if err == nil || len(part) < f.in.Size() {
			return line, err
		}
	}
}

// jsonRecord converts a JSON object to a record by the names of its keys. Values are text, lists of text, or
// attachments.
func jsonRecord(b []byte) (record, error) {
	var tree map[string]json.RawMessage
	if err := json.Unmarshal(b, &tree); err != nil {
		return record{}, fmt.Errorf("the line is not a JSON object")
	}
	r := record{text: map[string]string{}, list: map[string][]string{}}
	for key, raw := range tree {
		kind := columnKind(key)
		if kind == "" {
			continue
		}
		if kind == "attachments" {
			_ = json.Unmarshal(raw, &r.attachments) // other forms, such as a list of names, are ignored
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) == nil {
			if !utf8.ValidString(text) {
				text = strings.ToValidUTF8(text, "\uFFFD")
			}
			if _, taken := r.text[kind]; !taken || strings.EqualFold(key, kind) {
				r.text[kind] = text
			}
			continue
		}
		var list []string
		if json.Unmarshal(raw, &list) == nil {
			if r.list[kind] == nil || len(list) > 0 && key != "recipients" {
				r.list[kind] = list
			}
			continue
		}
		if kind == "date" && string(raw) != "null" {
			r.text[kind] = string(raw) // a number, or an invalid date
			continue
		}
		var object struct{ Name, Email, Address string }
		if json.Unmarshal(raw, &object) == nil && object.Email+object.Address != "" {
			r.text[kind] = reeve.FormatAddress(object.Email+object.Address, object.Name)
		}
	}
	return r, nil
}
