package store

import (
	"bytes"
	"io/fs"
	"regexp"
	"time"
)

// dialectFS is the file system of the migrations for one engine. It rewrites the files when they are opened:
//
//   - PostgreSQL: TEXT columns get COLLATE "C", so that text is ordered by bytes as in SQLite. Otherwise the order of a
//     page would depend on the server's settings, and the indexes on the version of its C library.
//   - PostgreSQL: INTEGER PRIMARY KEY, which SQLite needs for its row number, becomes BIGINT PRIMARY KEY.
//   - PostgreSQL: WITHOUT ROWID is removed.
//   - A part between "-- only NAME" and "-- end" is for the engine with that name only.
type dialectFS struct {
	fs.FS
	engine string
}

var (
	textColumn   = regexp.MustCompile(`\bTEXT\b( SEARCH)?`)
	rowNumber    = regexp.MustCompile(`\bINTEGER PRIMARY KEY\b`)
	withoutRowID = regexp.MustCompile(`\bWITHOUT ROWID\b`)
	engineBlock  = regexp.MustCompile(`(?ms)^-- only (\w+)\n(.*?)^-- end\n`)
)

// Open opens a file. Its content is rewritten for the engine.
func (s dialectFS) Open(name string) (fs.File, error) {
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
	return &memoryFile{name: name, Reader: bytes.NewReader(s.rewrite(body))}, nil
}

func (s dialectFS) rewrite(body []byte) []byte {
	body = engineBlock.ReplaceAllFunc(body, func(part []byte) []byte {
		if m := engineBlock.FindSubmatch(part); string(m[1]) == s.engine {
			return m[2]
		}
		return nil
	})
	if s.engine != "postgres" {
		return body
	}
	body = textColumn.ReplaceAllFunc(body, func(word []byte) []byte {
		if len(word) > len("TEXT") { // TEXT SEARCH is not a column type
			return word
		}
		return []byte(`TEXT COLLATE "C"`)
	})
	return withoutRowID.ReplaceAll(rowNumber.ReplaceAll(body, []byte("BIGINT PRIMARY KEY")), nil)
}

// memoryFile is a file in memory.
type memoryFile struct {
	*bytes.Reader
	name string
}

func (r *memoryFile) Stat() (fs.FileInfo, error) { return r, nil }
func (r *memoryFile) Close() error               { return nil }
func (r *memoryFile) Name() string               { return r.name }
func (r *memoryFile) Mode() fs.FileMode          { return 0o444 }
func (r *memoryFile) ModTime() time.Time         { return time.Time{} }
func (r *memoryFile) IsDir() bool                { return false }
func (r *memoryFile) Sys() any                   { return nil }
