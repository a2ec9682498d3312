package store

import (
	"bytes"
	"io/fs"
	"regexp"
	"time"
)

// spoken gives the migrations as an engine gets them. Text is ordered by its bytes in PostgreSQL, as SQLite does it:
// otherwise a page's order would depend on how the server was set up, and its indexes on the version of its C library.
// A number that SQLite takes for its own row's is INTEGER there, and nowhere else, and how it is to lay out a table is
// for it alone. What only one of them knows, such as full-text indexes, stands between "-- only NAME" and "-- end".
type spoken struct {
	fs.FS
	engine string
}

var (
	textColumn = regexp.MustCompile(`\bTEXT\b( SEARCH)?`)
	rowNumber  = regexp.MustCompile(`\bINTEGER PRIMARY KEY\b`)
	layout     = regexp.MustCompile(`\bWITHOUT ROWID\b`)
	onlyOne    = regexp.MustCompile(`(?ms)^-- only (\w+)\n(.*?)^-- end\n`)
)

// Open gives a file, rewritten.
func (s spoken) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return f, err
	}
	_ = f.Close()
	body, err := fs.ReadFile(s.FS, name)
	if err != nil {
		return nil, err
	}
	return &rewritten{name: name, Reader: bytes.NewReader(s.rewrite(body))}, nil
}

func (s spoken) rewrite(body []byte) []byte {
	body = onlyOne.ReplaceAllFunc(body, func(part []byte) []byte {
		if m := onlyOne.FindSubmatch(part); string(m[1]) == s.engine {
			return m[2]
		}
		return nil
	})
	if s.engine != "postgres" {
		return body
	}
	body = textColumn.ReplaceAllFunc(body, func(word []byte) []byte {
		if len(word) > len("TEXT") { // TEXT SEARCH is no column
			return word
		}
		return []byte(`TEXT COLLATE "C"`)
	})
	return layout.ReplaceAll(rowNumber.ReplaceAll(body, []byte("BIGINT PRIMARY KEY")), nil)
}

// rewritten is a file in memory.
type rewritten struct {
	*bytes.Reader
	name string
}

func (r *rewritten) Stat() (fs.FileInfo, error) { return r, nil }
func (r *rewritten) Close() error               { return nil }
func (r *rewritten) Name() string               { return r.name }
func (r *rewritten) Mode() fs.FileMode          { return 0o444 }
func (r *rewritten) ModTime() time.Time         { return time.Time{} }
func (r *rewritten) IsDir() bool                { return false }
func (r *rewritten) Sys() any                   { return nil }
