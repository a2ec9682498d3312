package py

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"reeve"
)

// home is where an interpreter lives on the disk.
type home struct {
	file string // the frozen interpreter
	code string // directory of its machine code
	sum  string // of the file
}

// unpack sees to it that the interpreter which this program carries is in the cache directory, under a name made from its content. What the
// directory holds is run, so others must not be able to write there.
func unpack(dir string) (h home, err error) {
	defer reeve.Wrap(&err, "py.unpack")
	if reason, hint := Available(); reason != "" {
		return h, reeve.Errorf(reeve.Unsupported, "%s", reason).Hintf("%s", hint)
	}
	if h.sum, err = sum(); err != nil || len(h.sum) != hex.EncodedLen(sha256.Size) {
		return h, reeve.Errorf(reeve.Unsupported, "this program was built with a broken Python interpreter").Hintf("run make assets build again")
	}
	own := filepath.Join(dir, h.sum[:16])
	h.file, h.code = filepath.Join(own, "python"), filepath.Join(own, "code")
	if err := os.MkdirAll(h.code, 0o700); err != nil {
		return h, reeve.Errorf(reeve.Unavailable, "there is no place for the Python interpreter: %w", err)
	}
	for _, d := range []string{dir, own, h.code} {
		if err := private(d); err != nil {
			return h, err
		}
	}
	if _, err := os.Stat(h.file); err == nil {
		return h, nil
	}
	if err := place(h.file, 0o400, h.write); err != nil {
		return h, reeve.Errorf(reeve.Unavailable, "the Python interpreter cannot be unpacked: %w", err).Hintf("is there room in %s?", dir)
	}
	return h, tidy(dir, filepath.Base(own))
}

// private refuses a directory that others can write to.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "there is no place for the Python interpreter: %w", err)
	}
	if !info.IsDir() || runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return reeve.Errorf(reeve.Forbidden, "the Python interpreter is not run from %s: others can write there", dir).Hintf("chmod 700 it, after looking at what is in it")
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
	f, err := os.Open(h.file)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != h.sum {
		return os.Remove(h.file)
	}
	return os.RemoveAll(h.code)
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

// tidy removes the interpreters of other versions. A server that still uses one unpacks it again when it next starts a worker.
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
