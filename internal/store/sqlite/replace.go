package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reeve"
)

// restoringInfix joins the target's name and a time to the name of a database that is about to replace the target. A
// file with this name is the durable decision to replace: before it exists the old database stays, afterwards the new
// one takes its place.
const restoringInfix = ".restoring-"

// Replace replaces a database file that is not open by another. It keeps the old database and its log under the
// returned name, which contains the time, so that repeated restores keep all of them. The name is empty if there was no
// old database. The process may stop at any point. [FinishReplace] then completes the replacement, so that there is
// always the complete old or new database. Replace calls before before each step, for fault tests.
func Replace(target, with string, before func()) (kept string, err error) {
	dir, when := filepath.Dir(target), reeve.Now().Format("20060102T150405.000")
	if err := errors.Join(syncPath(with), syncPath(dir)); err != nil {
		return "", err
	}
	before()
	if err := os.Rename(with, target+restoringInfix+when); err != nil {
		return "", err
	}
	return swapFiles(target, when, before)
}

// FinishReplace completes a replacement that was interrupted. Call it before the database is opened.
func FinishReplace(target string) error {
	entries, err := os.ReadDir(filepath.Dir(target))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if when, ok := strings.CutPrefix(e.Name(), filepath.Base(target)+restoringInfix); ok && err == nil {
			_, err = swapFiles(target, when, func() {})
		}
	}
	return err
}

// swapFiles renames the old database, its log first so that the log never meets another database, and then the new one.
// It can be repeated after an interruption.
func swapFiles(target, when string, before func()) (kept string, err error) {
	dir := filepath.Dir(target)
	if err := syncPath(dir); err != nil {
		return "", err
	}
	name := target + ".before-restore-" + when
	for _, ending := range []string{"-wal", "-shm", "-journal", ""} {
		before()
		switch err := os.Rename(target+ending, name+ending); {
		case err == nil:
			kept = name
		case !errors.Is(err, fs.ErrNotExist):
			return kept, err
		}
	}
	// before the new database gets its name, so that it never meets the old log after a power failure
	if err := syncPath(dir); err != nil {
		return kept, err
	}
	before()
	if err := os.Rename(target+restoringInfix+when, target); err != nil {
		return kept, err
	}
	before()
	return kept, syncPath(dir)
}
