package py

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"reeve"
	"reeve/internal/sandbox/py/report"
)

// home is where an interpreter lives on the disk: a folder that workers may read, whoever they are, inside one that is
// ours alone.
type home struct {
	dir string
	sum string // of the interpreter's file
}

func (h home) file() string { return filepath.Join(h.dir, report.FileName) }
func (h home) code() string { return filepath.Join(h.dir, report.CodeName) }

// unpack sees to it that the interpreter which this program carries is in the cache directory, under a name made from
// its content. What the directory holds is run, so others must not be able to write there.
func unpack(dir string) (h home, err error) {
	defer reeve.Wrap(&err, "py.unpack")
	if reason, hint := Available(); reason != "" {
		return h, reeve.Errorf(reeve.Unsupported, "%s", reason).Hintf("%s", hint)
	}
	if h.sum, err = sum(); err != nil || len(h.sum) != hex.EncodedLen(sha256.Size) {
		return h, reeve.Errorf(reeve.Unsupported, "this program was built with a broken Python interpreter").
			Hintf("run make assets build again")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return h, err
	}
	h.dir = filepath.Join(dir, h.sum[:16])
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return h, reeve.Errorf(reeve.Unavailable, "there is no place for the Python interpreter: %w", err)
	}
	for _, d := range []string{dir, h.dir} {
		if err := private(d); err != nil {
			return h, err
		}
	}
	if err := private(h.code()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return h, err
	}
	if _, err := os.Stat(h.file()); err == nil {
		return h, open(h.dir, h.file())
	}
	if err := place(h.file(), 0o444, h.write); err != nil {
		return h, reeve.Errorf(reeve.Unavailable, "the Python interpreter cannot be unpacked: %w", err).
			Hintf("is there room in %s?", dir)
	}
	return h, errors.Join(open(h.dir), tidy(dir, filepath.Base(h.dir)))
}

// open lets everybody read: a worker of a server that is root is somebody else, who has the folder and not the way to
// it.
func open(paths ...string) error {
	for _, p := range paths {
		info, err := os.Lstat(p)
		if err != nil {
			return err
		}
		mode := os.FileMode(0o444)
		if info.IsDir() {
			mode = 0o755
		}
		if info.Mode().Perm() != mode {
			if err := os.Chmod(p, mode); err != nil {
				return err
			}
		}
	}
	return nil
}

// translate has the machine code made, unless it is there: beside it first, so that it is there only when it is whole.
func (h home) translate(to func(dir string) error) error {
	if _, err := os.Stat(h.code()); err == nil {
		return nil
	}
	h.sweep()
	fresh, err := os.MkdirTemp(h.dir, ".code-*")
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "there is no place for Python's machine code: %w", err)
	}
	defer func() { _ = os.RemoveAll(fresh) }() // gone, unless something failed
	if err := to(fresh); err != nil {
		return err
	}
	n := 0
	if err := filepath.WalkDir(fresh, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = open(path)
			n++
		}
		return err
	}); err != nil || n < 2 {
		return reeve.Errorf(reeve.Unavailable, "Python's machine code was not written: %w",
			errors.Join(err, fs.ErrNotExist))
	}
	if err := os.Rename(fresh, h.code()); err != nil {
		if _, other := os.Stat(h.code()); other != nil { // another server was faster
			return reeve.Errorf(reeve.Unavailable, "Python's machine code cannot be kept: %w", err)
		}
	}
	return nil
}

// sweep removes what servers left that died while they translated. What is not old may be in use.
func (h home) sweep() {
	left, _ := filepath.Glob(filepath.Join(h.dir, ".code-*")) // the pattern is a good one
	for _, p := range left {
		if info, err := os.Lstat(p); err == nil && reeve.Now().Sub(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(p) // it is in nobody's way
		}
	}
}

// private refuses a directory that others can write to.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "there is no place for the Python interpreter: %w", err)
	}
	if !info.IsDir() || runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return reeve.Errorf(reeve.Forbidden, "the Python interpreter is not run from %s: others can write there", dir).
			Hintf("chmod 700 it, after looking at what is in it")
	}
	return nil
}

// write writes what is packed, and fails if it is not what it should be.
func (h home) write(w io.Writer) error {
	f, err := assets.Open(packedName)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is part of this program
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), z); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != h.sum {
		return errors.New("its checksum is " + got + ", not " + h.sum)
	}
	return nil
}

// mend removes what is damaged, to be made anew: the interpreter, or else its machine code.
func (h home) mend() error {
	f, err := os.Open(h.file())
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != h.sum {
		return os.Remove(h.file())
	}
	return os.RemoveAll(h.code())
}

// place makes a file appear under its name when it is whole, and not before.
func place(path string, mode os.FileMode, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".part-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Sync(), f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// tidy removes the interpreters of other versions. A server that still uses one unpacks it again when it next starts a
// worker.
func tidy(dir, own string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name, err := hex.DecodeString(e.Name()); err == nil && len(name) == 8 && e.IsDir() && e.Name() != own {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
