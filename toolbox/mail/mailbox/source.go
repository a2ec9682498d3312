package mailbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reeve"
)

// Format is how mail is kept.
type Format string

// The formats.
const (
	Maildir Format = "maildir" // a file for each mail, in folders
	Mbox    Format = "mbox"
	CSV     Format = "csv"
	JSONL   Format = "jsonl"
)

// Formats lists them.
func Formats() []Format { return []Format{Maildir, Mbox, CSV, JSONL} }

// Options say how to read, where it cannot be seen.
type Options struct {
	Format Format // of every file. Default: as each looks
	Inbox  string // whose mail it is. Default: as folders, files and columns say
}

// Source is mail on disk: a file, or a folder of files.
type Source struct {
	root   string // a folder; "" for a single file
	file   string // the single file
	opt    Options
	nested bool // the first folder is the inbox
	files  int64
	size   int64
}

// Item is what was read: a mail or why there is none, and where the reader stands after it.
type Item struct {
	Line     reeve.MailLine
	Position string
	Bytes    int64 // of the whole, up to here
}

// place is where a reader stands: in a file, or behind it.
type place struct {
	File   string `json:"file"`
	Offset int64  `json:"offset,omitempty"` // what is before it was read; -1 means the whole file
	Before string `json:"before,omitempty"` // what the bytes before it were, to notice that the file is another
	N      int64  `json:"n"`                // how many mails were read, so that no two places are the same
}

func (p place) String() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // it holds strings and numbers
	}
	return string(b)
}

// Open looks at what is there.
func Open(name string, opt Options) (*Source, error) {
	if opt.Format != "" && !slices.Contains(Formats(), opt.Format) {
		return nil, reeve.Errorf(reeve.Validation, "%q is not a format of mail", opt.Format).
			Hintf("maildir, mbox, csv or jsonl")
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, reeve.Errorf(reeve.NotFound, "there is no mail at %s: %w", name, errors.Unwrap(err))
	}
	s := &Source{opt: opt}
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return nil, reeve.Errorf(reeve.Validation, "%s is neither a file nor a folder", name)
		}
		s.file, s.files, s.size = name, 1, info.Size()
		return s, nil
	}
	s.root = name
	return s, s.survey()
}

// Files and Size are how much there is to read.
func (s *Source) Files() int64 { return s.files }

// Size is in bytes.
func (s *Source) Size() int64 { return s.size }

// survey counts the files and finds out whether the first level of folders are inboxes: they are when mail lies in
// folders below them, and none beside those.
func (s *Source) survey() error {
	shallow, deep := false, false
	err := s.walk(func(rel string, d fs.DirEntry) error {
		if !d.Type().IsRegular() {
			return nil
		}
		s.files++
		if info, err := d.Info(); err == nil {
			s.size += info.Size()
		}
		switch n := len(folders(rel)); {
		case n >= 2:
			deep = true
		default:
			shallow = true
		}
		return nil
	})
	s.nested = deep && (!shallow || filepath.Base(s.root) == "maildir")
	return err
}

// folders are the folders a file is in, without those that maildirs use for their own ends.
func folders(rel string) []string {
	parts := strings.Split(path.Dir(rel), "/")
	return slices.DeleteFunc(parts, func(p string) bool {
		return p == "." || p == "cur" || p == "new" ||
			p == "Maildir"
	})
}

// walk goes through the files in one order, always the same.
func (s *Source) walk(f func(rel string, d fs.DirEntry) error) error {
	tree := os.DirFS(s.root)
	return fs.WalkDir(tree, ".", func(rel string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && rel == ".":
			return reeve.Errorf(reeve.Unavailable, "%s cannot be read: %w", s.root, err)
		case err != nil:
			return f(rel, broken{d, err})
		case d.IsDir():
			if d.Name() == "tmp" && rel != "." { // mails that are being delivered
				return fs.SkipDir
			}
			if strings.HasPrefix(d.Name(), ".") && rel != "." { // a folder of a maildir, or somebody's own
				if _, err := fs.Stat(tree, path.Join(rel, "cur")); err != nil {
					return fs.SkipDir
				}
			}
			return nil
		case strings.HasPrefix(d.Name(), ".") || own(d.Name()):
			return nil
		}
		return f(rel, d)
	})
}

// own tells whether a file is a mail server's own.
func own(name string) bool {
	return strings.HasPrefix(name, "dovecot") || strings.HasPrefix(name, "courier") || name == "maildirfolder" ||
		name == "subscriptions" || strings.HasSuffix(name, ".msf")
}

// broken is a file or folder that cannot be looked at.
type broken struct {
	fs.DirEntry
	err error
}

// Items reads the mails behind a position; empty means from the beginning. An error ends it.
func (s *Source) Items(from string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		r := &reader{Source: s, yield: yield}
		if from != "" {
			if err := json.Unmarshal([]byte(from), &r.at); err != nil {
				yield(Item{}, reeve.Errorf(reeve.Validation, "%q is not a position of this reader",
					reeve.Truncate(from, 100)).Hintf("begin again with --restart"))
				return
			}
			r.resumed = r.at
		}
		err := r.all()
		if err != nil && err != errStop { //nolint:errorlint // it is ours, and never wrapped
			yield(Item{}, err)
		}
	}
}

var errStop = errors.New("enough")

// reader goes through a source once.
type reader struct {
	*Source
	yield   func(Item, error) bool
	at      place // where it stands
	resumed place // where it began
	bytes   int64 // of the files before this one
}

func (r *reader) all() error {
	if r.root == "" {
		if r.resumed.Offset < 0 {
			return nil
		}
		return r.one(filepath.Base(r.file), func() (*os.File, error) { return os.Open(r.file) }, nil)
	}
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "%s cannot be read: %w", r.root, err)
	}
	defer root.Close()
	return r.walk(func(rel string, d fs.DirEntry) error {
		var size int64
		if info, err := d.Info(); err == nil {
			size = info.Size()
		}
		if r.resumed.File != "" && (before(rel, r.resumed.File) || rel == r.resumed.File && r.resumed.Offset < 0) {
			r.bytes += size
			return nil
		}
		if b, ok := d.(broken); ok {
			return r.bad(rel, "it cannot be read: %s", plainPath(b.err))
		}
		if !d.Type().IsRegular() {
			return r.bad(rel, "it is a link or no file, and was not followed")
		}
		err := r.one(rel, func() (*os.File, error) { return root.Open(filepath.FromSlash(rel)) }, folders(rel))
		r.bytes += size
		return err
	})
}

// before tells whether a file comes before another on a walk.
func before(a, b string) bool {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	return slices.Compare(x, y) < 0
}

// one reads one file.
func (r *reader) one(rel string, open func() (*os.File, error), in []string) (err error) {
	f, err := open()
	if err != nil {
		return r.bad(rel, "it cannot be read: %s", plainPath(err))
	}
	defer f.Close()
	from := int64(0)
	if rel == r.resumed.File && r.resumed.Offset > 0 {
		if from = r.resumed.Offset; tail(f, from) != r.resumed.Before {
			from = 0 // another file, or one that was written anew: what was read before is found out to be there
		}
	}
	head := make([]byte, 4096)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return r.bad(rel, "it cannot be read: %s", plainPath(err))
	}
	box := &file{reader: r, rel: rel, f: f, folders: in, in: newCounter(f, from)}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return r.bad(rel, "it cannot be read: %s", plainPath(err))
	}
	switch r.kind(rel, head[:n]) {
	case Mbox:
		return box.mbox()
	case CSV:
		return box.csv()
	case JSONL:
		return box.jsonl()
	case Maildir:
	}
	return box.single()
}

// kind is the format of a file by its name, else by how it begins.
func (r *reader) kind(rel string, head []byte) Format {
	if r.opt.Format != "" {
		return r.opt.Format
	}
	switch strings.ToLower(path.Ext(rel)) {
	case ".csv":
		return CSV
	case ".jsonl", ".ndjson":
		return JSONL
	case ".mbox":
		return Mbox
	case ".eml":
		return Maildir
	}
	switch {
	case bytes.HasPrefix(head, []byte("From ")):
		return Mbox
	case bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")):
		return JSONL
	}
	return Maildir
}

// give hands over what was read up to a place.
func (r *reader) give(line reeve.MailLine, bytes int64) error {
	fit(&line)
	if !r.yield(Item{Line: line, Position: r.at.String(), Bytes: bytes}, nil) {
		return errStop
	}
	return nil
}

// bad is for a file that cannot be read at all.
func (r *reader) bad(rel, format string, args ...any) error {
	r.at = place{File: rel, Offset: -1, N: r.at.N + 1}
	return r.give(reeve.MailLine{Place: rel, Bad: fmt.Sprintf(format, args...)}, r.bytes)
}

// tail names the bytes before a place in a file.
func tail(f *os.File, at int64) string {
	b := make([]byte, min(at, 256))
	if _, err := f.ReadAt(b, at-int64(len(b))); err != nil && err != io.EOF {
		return ""
	}
	return reeve.Hash(b)[:16]
}

// plainPath is a file error without its path, which is told beside it.
func plainPath(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}
