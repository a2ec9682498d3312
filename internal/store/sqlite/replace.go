package sqlite

import (
	"errors"
	"os"

	"reeve"
)

// Replace puts a database file in the place of another that nobody has open. The old one, with what its write-ahead log
// holds, is kept under the name it gives, which says when: a second restore never takes the place of what the first one kept.
// The name is empty when there was none.
func Replace(target, with string) (kept string, err error) {
	name := target + ".before-restore-" + reeve.Now().Format("20060102T150405.000")
	for _, ending := range []string{"-wal", "-shm", ""} {
		switch err := os.Rename(target+ending, name+ending); {
		case err == nil:
			kept = name
		case !errors.Is(err, os.ErrNotExist):
			return kept, err
		}
	}
	return kept, os.Rename(with, target)
}
