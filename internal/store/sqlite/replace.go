package sqlite

import (
	"errors"
	"os"
)

// Replace puts a database file in the place of another that nobody has open. The old one, with what its write-ahead log
// holds, is kept with the ending .before-restore.
func Replace(target, with string) error {
	for _, ending := range []string{"-wal", "-shm", ""} {
		err := os.Rename(target+ending, target+".before-restore"+ending)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.Rename(with, target)
}
