package wire

import (
	"encoding/hex"
	"hash/fnv"
	"io/fs"
	"path"
)

// Version returns a name for a kind of worker that contains a hash of its source files, which are in dir. A host uses
// only workers that were built from the same sources.
func Version(kind string, files fs.FS, dir string) string {
	h := fnv.New128a()
	entries, _ := fs.ReadDir(files, dir) // reading embedded files does not fail
	for _, e := range entries {
		text, _ := fs.ReadFile(files, path.Join(dir, e.Name()))
		_, _ = h.Write(text)
	}
	return "reeve-" + kind + "-" + hex.EncodeToString(h.Sum(nil))
}
