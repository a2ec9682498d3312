package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reeve"
)

// restoring is what the name of a database that is about to be put in place has after the target's: this, and when. It
// is the decision to put it there: until it has that name the old database stays, and from then on the new one takes
// its place.
const restoring = ".restoring-"

// Replace puts a database file in the place of another that nobody has open. The old one, with what its write-ahead log
// holds, is kept under the name it gives, which says when: a second restore never takes the place of what the first one
// kept. The name is empty when there was none. The process may end at any point: [Finish] then does what is left, and
// there is the old database or the new one, whole. Before is called before each step, for fault tests.
func Replace(target, with string, before func()) (kept string, err error) {
	dir, when := filepath.Dir(target), reeve.Now().Format("20060102T150405.000")
	if err := errors.Join(flush(with), flush(dir)); err != nil {
		return "", err
	}
	before()
	if err := os.Rename(with, target+restoring+when); err != nil {
		return "", err
	}
	return put(target, when, before)
}

// FinishReplace ends a replacement that was interrupted after it was decided. It comes before a database is opened.
func FinishReplace(target string) error {
	entries, err := os.ReadDir(filepath.Dir(target))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if when, ok := strings.CutPrefix(e.Name(), filepath.Base(target)+restoring); ok && err == nil {
			_, err = put(target, when, func() {})
		}
	}
	return err
}

// put moves the old database away, its log first so that no other database ever finds it, and then the new one in. What
// was done before is not there to be done again.
func put(target, when string, before func()) (kept string, err error) {
	dir := filepath.Dir(target)
	if err := flush(dir); err != nil {
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
	// before the new one is there: its name must not meet the old one's log after a power cut
	if err := flush(dir); err != nil {
		return kept, err
	}
	before()
	if err := os.Rename(target+restoring+when, target); err != nil {
		return kept, err
	}
	before()
	return kept, flush(dir)
}
