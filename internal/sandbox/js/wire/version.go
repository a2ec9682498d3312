package wire

import (
	"encoding/hex"
	"hash/fnv"
	"io/fs"
	"path"
)

// Version names a kind of worker and the text that it was made from: the files of a directory.
func Version(kind string, files fs.FS, dir string) string {
	h := fnv.New128a()
	entries, _ := fs.ReadDir(files, dir) // never fails, both of them: the files are part of the program
	for _, e := range entries {
		text, _ := fs.ReadFile(files, path.Join(dir, e.Name()))
		_, _ = h.Write(text)
	}
	return "reeve-" + kind + "-" + hex.EncodeToString(h.Sum(nil))
}
