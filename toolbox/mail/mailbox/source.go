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

// Format is a storage format of mail.
type Format string

// The supported formats.
const (
	Maildir Format = "maildir" // a file for each mail, in folders
	Mbox    Format = "mbox"
	CSV     Format = "csv"
	JSONL   Format = "jsonl"
)

// Formats lists the supported formats.
func Formats() []Format { return []Format{Maildir, Mbox, CSV, JSONL} }

// Options set what cannot be detected.
type Options struct {
	Format Format // format of every file. Default: detected for each file
	Inbox  string // name of the inbox. Default: from folders, files and columns
}

// Source is mail on disk, in a file or in a folder of files.
type Source struct {
	root   string // a folder; "" for a single file
	file   string // the single file
	opt    Options
	nested bool // the first folder level names the inbox
	files  int64
	size   int64
}

// Item is a mail, or the reason why it could not be read, and the position after it.
type Item struct {
	Line     reeve.MailLine
	Position string
	Bytes    int64 // bytes read so far, of all files
}

// position is a position in a source: inside a file, or after it.
type position struct {
	File   string `json:"file"`
	Offset int64  `json:"offset,omitempty"` // bytes before it were read; -1 means the whole file
	Before string `json:"before,omitempty"` // hash of the bytes before it, to detect another file
	N      int64  `json:"n"`                // number of mails read, so that no two positions are equal
}

func (p position) String() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return string(b)
}

// Open returns the source at a path. It fails if there is no file or folder.
func Open(name string, opt Options) (*Source, error) {
	if opt.Format != "" && !slices.Contains(Formats(), opt.Format) {
		return nil, reeve.Errorf(reeve.Validation, "%q is not a mail format", opt.Format).
			Hintf("use maildir, mbox, csv or jsonl")
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

// Files returns the number of files.
func (s *Source) Files() int64 { return s.files }

// Size returns the number of bytes in all files.
func (s *Source) Size() int64 { return s.size }

// survey counts the files. It also detects whether the first level of folders are inboxes: mail is then only in folders
// below them.
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
		switch n := len(parentFolders(rel)); {
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

// parentFolders returns the folders that contain a file, without the technical folders of maildirs.
func parentFolders(rel string) []string {
	parts := strings.Split(path.Dir(rel), "/")
	return slices.DeleteFunc(parts, func(p string) bool {
		return p == "." || p == "cur" || p == "new" || p == "Maildir"
	})
}

// walk visits the files, always in the same order.
func (s *Source) walk(f func(rel string, d fs.DirEntry) error) error {
	tree := os.DirFS(s.root)
	return fs.WalkDir(tree, ".", func(rel string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && rel == ".":
			return reeve.Errorf(reeve.Unavailable, "%s cannot be read: %w", s.root, err)
		case err != nil:
			return f(rel, unreadableEntry{d, err})
		case d.IsDir():
			if d.Name() == "tmp" && rel != "." { // mails in delivery
				return fs.SkipDir
			}
			if strings.HasPrefix(d.Name(), ".") && rel != "." { // a maildir folder, or a hidden folder
				if _, err := fs.Stat(tree, path.Join(rel, "cur")); err != nil {
					return fs.SkipDir
				}
			}
			return nil
		case strings.HasPrefix(d.Name(), ".") || isServerFile(d.Name()):
			return nil
		}
		return f(rel, d)
	})
}

// isServerFile reports whether a file belongs to the mail server and is not mail.
func isServerFile(name string) bool {
	return strings.HasPrefix(name, "dovecot") || strings.HasPrefix(name, "courier") || name == "maildirfolder" ||
		name == "subscriptions" || strings.HasSuffix(name, ".msf")
}

// unreadableEntry is a file or folder that cannot be read.
type unreadableEntry struct {
	fs.DirEntry
	err error
}

// Items returns the mails after a position; empty means from the beginning. An error ends the sequence.
func (s *Source) Items(from string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		r := &reader{Source: s, yield: yield}
		if from != "" {
			if err := json.Unmarshal([]byte(from), &r.at); err != nil {
				yield(Item{}, reeve.Errorf(reeve.Validation, "%q is not a valid import position",
					reeve.Truncate(from, 100)).Hintf("start over with --restart"))
				return
			}
			r.resumed = r.at
		}
		err := r.readAll()
		if err != nil && err != errStop { //nolint:errorlint // never wrapped
			yield(Item{}, err)
		}
	}
}

var errStop = errors.New("enough")

// reader reads a source once.
type reader struct {
	*Source
	yield   func(Item, error) bool
	at      position // current position
	resumed position // start position
	bytes   int64    // bytes of the files before the current one
}

func (r *reader) readAll() error {
	if r.root == "" {
		if r.resumed.Offset < 0 {
			return nil
		}
		return r.readFile(filepath.Base(r.file), func() (*os.File, error) { return os.Open(r.file) }, nil)
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
		if r.resumed.File != "" && (isBefore(rel, r.resumed.File) || rel == r.resumed.File && r.resumed.Offset < 0) {
			r.bytes += size
			return nil
		}
		if b, ok := d.(unreadableEntry); ok {
			return r.yieldUnreadable(rel, "it cannot be read: %s", errorWithoutPath(b.err))
		}
		if !d.Type().IsRegular() {
			return r.yieldUnreadable(rel, "it is a link or no file, and was not followed")
		}
		err := r.readFile(rel, func() (*os.File, error) { return root.Open(filepath.FromSlash(rel)) },
			parentFolders(rel))
		r.bytes += size
		return err
	})
}

// isBefore reports whether walk visits file a before file b.
func isBefore(a, b string) bool {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	return slices.Compare(x, y) < 0
}

// readFile reads one file.
func (r *reader) readFile(rel string, open func() (*os.File, error), in []string) (err error) {
	f, err := open()
	if err != nil {
		return r.yieldUnreadable(rel, "it cannot be read: %s", errorWithoutPath(err))
	}
	defer f.Close()
	from := int64(0)
	if rel == r.resumed.File && r.resumed.Offset > 0 {
		if from = r.resumed.Offset; hashBefore(f, from) != r.resumed.Before {
			from = 0 // the file was replaced: read all of it; the import skips mails that it already has
		}
	}
	head := make([]byte, 4096)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return r.yieldUnreadable(rel, "it cannot be read: %s", errorWithoutPath(err))
	}
	box := &file{reader: r, rel: rel, f: f, folders: in, in: newOffsetReader(f, from)}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return r.yieldUnreadable(rel, "it cannot be read: %s", errorWithoutPath(err))
	}
	switch r.detectFormat(rel, head[:n]) {
	case Mbox:
		return box.readMbox()
	case CSV:
		return box.readCSV()
	case JSONL:
		return box.readJSONL()
	case Maildir:
	}
	return box.readSingle()
}

// detectFormat returns the format of a file by its name, or else by its first bytes.
func (r *reader) detectFormat(rel string, head []byte) Format {
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

// yieldLine yields an item at the current position.
func (r *reader) yieldLine(line reeve.MailLine, bytes int64) error {
	truncate(&line)
	if !r.yield(Item{Line: line, Position: r.at.String(), Bytes: bytes}, nil) {
		return errStop
	}
	return nil
}

// yieldUnreadable yields an item for a file that cannot be read at all.
func (r *reader) yieldUnreadable(rel, format string, args ...any) error {
	r.at = position{File: rel, Offset: -1, N: r.at.N + 1}
	return r.yieldLine(reeve.MailLine{Place: rel, Error: fmt.Sprintf(format, args...)}, r.bytes)
}

// hashBefore returns a hash of the bytes before an offset.
func hashBefore(f *os.File, at int64) string {
	b := make([]byte, min(at, 256))
	if _, err := f.ReadAt(b, at-int64(len(b))); err != nil && err != io.EOF {
		return ""
	}
	return reeve.Hash(b)[:16]
}

// errorWithoutPath returns the text of a file error without the path, which the item already contains.
func errorWithoutPath(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}
