package store

import (
	"bytes"
	"io/fs"
	"regexp"
	"time"
)

// bytewise gives the migrations as PostgreSQL gets them: text is ordered by its bytes, as SQLite does it. Otherwise a page's
// order would depend on how the server was set up, and its indexes on the version of its C library.
type bytewise struct{ fs.FS }

var textColumn = regexp.MustCompile(`\bTEXT\b`)

// Open gives a file, rewritten.
func (b bytewise) Open(name string) (fs.File, error) {
	f, err := b.FS.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return f, err
	}
	_ = f.Close()
	body, err := fs.ReadFile(b.FS, name)
	if err != nil {
		return nil, err
	}
	return &rewritten{name: name, Reader: bytes.NewReader(textColumn.ReplaceAll(body, []byte(`TEXT COLLATE "C"`)))}, nil
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
