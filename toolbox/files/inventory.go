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

// inventoryRecord describes one entry below a folder.
type inventoryRecord struct {
	Path   string `json:"path"` // relative to the folder, quoted as in Go, because names may not be valid text
	Kind   kind   `json:"kind"`
	Hash   string `json:"hash,omitempty"`   // only for files
	Size   int64  `json:"size,omitempty"`   // only for files
	Target string `json:"target,omitempty"` // only for links; quoted
	Mode   string `json:"mode,omitempty"`   // only for files and folders; empty for the default mode
}

// inventoryBuilder lists all entries below a folder. The list is sorted, so that equal folders have equal inventories.
type inventoryBuilder struct {
	content   *contentStore
	save      blobSaver
	remaining int64 // bytes that may still be read
	records   []inventoryRecord
}

// build returns the inventory of the folder at a location as JSON. It passes each file's bytes to save.
func (ib *inventoryBuilder) build(ctx context.Context, loc location) ([]byte, error) {
	dir, err := openSubdir(loc.dir, loc.name, loc.path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := ib.walk(ctx, dir, loc.path, ""); err != nil {
		return nil, err
	}
	return json.Marshal(ib.records)
}

// walk adds the entries below dir. prefix is the path of dir relative to the top folder, with a slash at the end.
func (ib *inventoryBuilder) walk(ctx context.Context, dir *os.Root, v vpath, prefix string) error {
	if len(v.names) > maxDepth {
		return reeve.Errorf(reeve.TooLarge, "%s is more than %d folders deep", v, maxDepth)
	}
	names, err := ib.content.readDirNames(ctx, dir, v, len(ib.records))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := ib.visit(ctx, location{dir: dir, name: name, path: v.child(name)}, prefix+name); err != nil {
			return err
		}
	}
	return nil
}

// visit adds one entry, and the entries below it if it is a folder.
func (ib *inventoryBuilder) visit(ctx context.Context, loc location, rel string) error {
	info, err := loc.dir.Lstat(loc.name)
	if err != nil {
		return convertError(err, loc.path)
	}
	r := inventoryRecord{Path: strconv.Quote(rel)}
	switch mode := info.Mode(); {
	case mode.IsDir():
		r.Kind, r.Mode = folder, formatPermissions(folder, mode)
		ib.records = append(ib.records, r)
		sub, err := openSubdir(loc.dir, loc.name, loc.path)
		if err != nil {
			return err
		}
		defer sub.Close()
		return ib.walk(ctx, sub, loc.path, rel+"/")
	case mode&fs.ModeSymlink != 0:
		target, err := loc.dir.Readlink(loc.name)
		if err != nil {
			return convertError(err, loc.path)
		}
		r.Kind, r.Target = link, strconv.Quote(target)
	default:
		b, got, err := loc.readFile(ctx, ib.remaining)
		if reeve.CodeOf(err) == reeve.TooLarge {
			return ib.content.limitError()
		}
		if err != nil {
			return err
		}
		s := fileState(b, got.Mode()&0o111 != 0)
		r.Kind, r.Hash, r.Size, r.Mode = s.kind, s.hash, int64(len(b)), formatPermissions(s.kind, got.Mode())
		ib.remaining -= r.Size
		if ib.save != nil {
			if err := ib.save(b); err != nil {
				return err
			}
		}
	}
	ib.records = append(ib.records, r)
	return nil
}

// limitError returns the error for a folder with more than MaxUndo bytes or MaxEntries entries.
func (p *contentStore) limitError() error {
	return reeve.Errorf(reeve.TooLarge,
		"the folder has more than %d bytes or %d entries, the maximum that can be stored for undo",
		p.maxUndo, p.maxEntries).Hintf("delete or restore its subfolders one by one")
}

// readDirNames returns the sorted names in a folder, without temporary files of calls. It fails with TooLarge if the
// folder and the seen entries are more than MaxEntries.
func (p *contentStore) readDirNames(ctx context.Context, dir *os.Root, v vpath, seen int) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, convertError(err, v)
	}
	defer f.Close()
	var names []string
	for {
		batch, err := f.Readdirnames(1024)
		names = append(names, slices.DeleteFunc(batch, isTempName)...)
		if seen+len(names) > p.maxEntries {
			return nil, p.limitError()
		}
		switch {
		case errors.Is(err, io.EOF):
			slices.Sort(names)
			return names, nil
		case err != nil:
			return nil, convertError(err, v)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
	}
}

// parseInventory parses an inventory and checks every record, because a caller can name any stored bytes by their hash.
func parseInventory(b []byte) ([]inventoryRecord, error) {
	invalid := reeve.Errorf(reeve.Validation, "the hash does not name a stored folder")
	var records []inventoryRecord
	if err := json.Unmarshal(b, &records); err != nil {
		return nil, invalid
	}
	for _, r := range records {
		rel, err := strconv.Unquote(r.Path)
		if err != nil || rel == "" {
			return nil, invalid
		}
		for name := range strings.SplitSeq(rel, "/") {
			if name == "" || name == "." || name == ".." || len(name) > maxName || isTempName(name) ||
				strings.ContainsRune(name, 0) {
				return nil, invalid
			}
		}
		if _, err := strconv.ParseUint(r.Mode, 8, 9); err != nil && r.Mode != "" {
			return nil, invalid
		}
		switch r.Kind {
		case folder, file, program:
		case link:
			if _, err := strconv.Unquote(r.Target); err != nil {
				return nil, invalid
			}
		default:
			return nil, invalid
		}
	}
	return records, nil
}
