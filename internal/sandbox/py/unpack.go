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

// interpreter is an unpacked interpreter on disk. Its folder is readable for all users, because workers of a root
// server run as another user. The folder is inside the cache directory, which only the server's user can enter.
type interpreter struct {
	dir string
	sum string // SHA-256 of the interpreter's file, in hexadecimal
}

func (h interpreter) filePath() string { return filepath.Join(h.dir, report.FileName) }
func (h interpreter) codePath() string { return filepath.Join(h.dir, report.CodeName) }

// unpack makes sure that the embedded interpreter is unpacked in a folder of the cache directory that is named after
// its checksum. It fails if other users can write to the directory, because its content is executed.
func unpack(dir string) (h interpreter, err error) {
	defer reeve.Wrap(&err, "py.unpack")
	if reason, hint := Available(); reason != "" {
		return h, reeve.Errorf(reeve.Unsupported, "%s", reason).Hintf("%s", hint)
	}
	if h.sum, err = readChecksum(); err != nil || len(h.sum) != hex.EncodedLen(sha256.Size) {
		return h, reeve.Errorf(reeve.Unsupported, "the embedded Python interpreter has no valid checksum").
			Hintf("run make assets build again")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return h, err
	}
	h.dir = filepath.Join(dir, h.sum[:16])
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return h, reeve.Errorf(reeve.Unavailable, "cannot create the folder of the Python interpreter: %w", err)
	}
	for _, d := range []string{dir, h.dir} {
		if err := checkPrivate(d); err != nil {
			return h, err
		}
	}
	if err := checkPrivate(h.codePath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return h, err
	}
	if _, err := os.Stat(h.filePath()); err == nil {
		return h, makeReadable(h.dir, h.filePath())
	}
	if err := writeFileAtomically(h.filePath(), 0o444, h.writeFile); err != nil {
		return h, reeve.Errorf(reeve.Unavailable, "cannot unpack the Python interpreter: %w", err).
			Hintf("check that %s has free space", dir)
	}
	return h, errors.Join(makeReadable(h.dir), removeOtherVersions(dir, filepath.Base(h.dir)))
}

// makeReadable makes files and folders readable for all users. A worker of a root server runs as another user. It
// receives the open folder, because it cannot reach it by path.
func makeReadable(paths ...string) error {
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

// translate creates the interpreter's machine code by calling compile, unless it exists. It writes to a temporary
// folder and renames that, so that the machine code is never incomplete.
func (h interpreter) translate(compile func(dir string) error) error {
	if _, err := os.Stat(h.codePath()); err == nil {
		return nil
	}
	h.removeLeftovers()
	fresh, err := os.MkdirTemp(h.dir, ".code-*")
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "cannot create a folder for the machine code of Python: %w", err)
	}
	defer func() { _ = os.RemoveAll(fresh) }() // after success the folder has been renamed
	if err := compile(fresh); err != nil {
		return err
	}
	n := 0
	if err := filepath.WalkDir(fresh, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = makeReadable(path)
			n++
		}
		return err
	}); err != nil || n < 2 {
		return reeve.Errorf(reeve.Unavailable, "the machine code of Python was not written: %w",
			errors.Join(err, fs.ErrNotExist))
	}
	if err := os.Rename(fresh, h.codePath()); err != nil {
		if _, statErr := os.Stat(h.codePath()); statErr != nil { // else another server created it first
			return reeve.Errorf(reeve.Unavailable, "cannot store the machine code of Python: %w", err)
		}
	}
	return nil
}

// removeLeftovers removes temporary folders of servers that died in translate. Folders younger than an hour may be in
// use.
func (h interpreter) removeLeftovers() {
	left, _ := filepath.Glob(filepath.Join(h.dir, ".code-*")) // the pattern is valid
	for _, p := range left {
		if info, err := os.Lstat(p); err == nil && reeve.Now().Sub(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(p) // a folder that cannot be removed does no harm
		}
	}
}

// checkPrivate returns an error if dir is not a directory, or if other users can write to it.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "cannot open the folder of the Python interpreter: %w", err)
	}
	if !info.IsDir() || runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return reeve.Errorf(reeve.Forbidden, "cannot run the Python interpreter from %s: other users can write there",
			dir).Hintf("check its content, then run chmod 700 on it")
	}
	return nil
}

// writeFile writes the uncompressed interpreter to w. It fails if the checksum is not the expected one.
func (h interpreter) writeFile(w io.Writer) error {
	f, err := assets.Open(packedName)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // closing an embedded file does not fail
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), z); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != h.sum {
		return errors.New("checksum is " + got + ", want " + h.sum)
	}
	return nil
}

// removeDamaged removes the interpreter's file if its checksum is wrong, or else the machine code. The next start
// creates them anew.
func (h interpreter) removeDamaged() error {
	f, err := os.Open(h.filePath())
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != h.sum {
		return os.Remove(h.filePath())
	}
	return os.RemoveAll(h.codePath())
}

// writeFileAtomically writes a temporary file and renames it to path, so that path never has incomplete content.
func writeFileAtomically(path string, mode os.FileMode, write func(io.Writer) error) (err error) {
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

// removeOtherVersions removes all interpreters in dir except the one named own. A server that still uses another one
// unpacks it again when it next starts a worker.
func removeOtherVersions(dir, own string) error {
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
