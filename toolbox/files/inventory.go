package files

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"reeve"
)

// record is one line of a folder's inventory.
type record struct {
	Path   string `json:"path"` // relative to the folder, quoted as in Go, since names on disk need not be valid text
	Kind   kind   `json:"kind"`
	Hash   string `json:"hash,omitempty"`   // of a file
	Size   int64  `json:"size,omitempty"`   // of a file
	Target string `json:"target,omitempty"` // of a link, quoted
	Mode   string `json:"mode,omitempty"`   // of a file or folder that has other permissions than this pack gives
}

// walker takes the inventory of a folder: all that is below it, in order, so that equal folders have equal inventories.
type walker struct {
	pack    *Pack
	keep    keepBytes
	left    int64 // bytes that may still be read
	records []record
}

func (w *walker) inventory(ctx context.Context, pl place) ([]byte, error) {
	dir, err := enter(pl.dir, pl.name, pl.path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := w.walk(ctx, dir, pl.path, ""); err != nil {
		return nil, err
	}
	return json.Marshal(w.records)
}

func (w *walker) walk(ctx context.Context, dir *os.Root, v vpath, prefix string) error {
	if len(v.names) > maxDepth {
		return reeve.Errorf(reeve.TooLarge, "%s is more than %d folders deep", v, maxDepth)
	}
	names, err := w.names(ctx, dir, v)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := w.visit(ctx, place{dir: dir, name: name, path: v.child(name)}, prefix+name); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) visit(ctx context.Context, pl place, rel string) error {
	info, err := pl.dir.Lstat(pl.name)
	if err != nil {
		return fault(err, pl.path)
	}
	r := record{Path: strconv.Quote(rel)}
	switch mode := info.Mode(); {
	case mode.IsDir():
		r.Kind, r.Mode = folder, unusual(folder, mode)
		w.records = append(w.records, r)
		sub, err := enter(pl.dir, pl.name, pl.path)
		if err != nil {
			return err
		}
		defer sub.Close()
		return w.walk(ctx, sub, pl.path, rel+"/")
	case mode&fs.ModeSymlink != 0:
		target, err := pl.dir.Readlink(pl.name)
		if err != nil {
			return fault(err, pl.path)
		}
		r.Kind, r.Target = link, strconv.Quote(target)
	default:
		b, got, err := pl.bytes(ctx, w.left)
		if reeve.CodeOf(err) == reeve.TooLarge {
			return w.tooMuch()
		}
		if err != nil {
			return err
		}
		s := fileState(b, got.Mode()&0o111 != 0)
		r.Kind, r.Hash, r.Size, r.Mode = s.kind, s.hash, int64(len(b)), unusual(s.kind, got.Mode())
		w.left -= r.Size
		if w.keep != nil {
			if err := w.keep(b); err != nil {
				return err
			}
		}
	}
	w.records = append(w.records, r)
	return nil
}

func (w *walker) tooMuch() error {
	return reeve.Errorf(reeve.TooLarge,
		"the folder holds more than the %d bytes in %d entries that can be kept for undo",
		w.pack.cfg.MaxKeep, w.pack.cfg.MaxEntries).Hintf("work on its parts")
}

// names gives the sorted names in a folder, without those of calls under way.
func (w *walker) names(ctx context.Context, dir *os.Root, v vpath) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, fault(err, v)
	}
	defer f.Close()
	var names []string
	for {
		batch, err := f.Readdirnames(1024)
		names = append(names, slices.DeleteFunc(batch, isOwn)...)
		if len(w.records)+len(names) > w.pack.cfg.MaxEntries {
			return nil, w.tooMuch()
		}
		switch {
		case errors.Is(err, io.EOF):
			slices.Sort(names)
			return names, nil
		case err != nil:
			return nil, fault(err, v)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
	}
}

// readInventory is the inverse of inventory. What it reads need not have come from one: any kept bytes can be named.
func readInventory(b []byte) ([]record, error) {
	wrong := reeve.Errorf(reeve.Validation, "the hash does not name a kept folder")
	var records []record
	if err := json.Unmarshal(b, &records); err != nil {
		return nil, wrong
	}
	for _, r := range records {
		rel, err := strconv.Unquote(r.Path)
		if err != nil || rel == "" {
			return nil, wrong
		}
		for name := range strings.SplitSeq(rel, "/") {
			if name == "" || name == "." || name == ".." || len(name) > maxName || isOwn(name) ||
				strings.ContainsRune(name, 0) {
				return nil, wrong
			}
		}
		if _, err := strconv.ParseUint(r.Mode, 8, 9); err != nil && r.Mode != "" {
			return nil, wrong
		}
		switch r.Kind {
		case folder, file, program:
		case link:
			if _, err := strconv.Unquote(r.Target); err != nil {
				return nil, wrong
			}
		default:
			return nil, wrong
		}
	}
	return records, nil
}
