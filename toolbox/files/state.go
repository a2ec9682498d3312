package files

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"reeve"
)

// kind is the kind of an entry, and the first part of its state.
type kind string

// The kinds of entries.
const (
	absent  kind = "absent"
	file    kind = "sha256"   // followed by the hash of its bytes
	program kind = "sha256+x" // an executable file, followed by the hash of its bytes
	link    kind = "link"     // followed by the hash of its target
	folder  kind = "dir"      // followed by the hash of its inventory
)

// state identifies the content of an entry. Two states are equal exactly if the entries have the same kind and content.
// The hash is the address of the content in the [BlobStore], if the content was stored.
type state struct {
	kind kind
	hash string
}

func (s state) String() string {
	if s.hash == "" {
		return string(s.kind)
	}
	return string(s.kind) + ":" + s.hash
}

// parseState parses a state. A hash without a kind means a file.
func parseState(s string) (state, error) {
	if s == string(absent) {
		return state{kind: absent}, nil
	}
	k, hash, ok := strings.Cut(s, ":")
	if !ok {
		k, hash = string(file), s
	}
	switch kind(k) {
	case file, program, link, folder:
		if len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == "" {
			return state{kind: kind(k), hash: hash}, nil
		}
	case absent:
	}
	e := reeve.Errorf(reeve.Validation, "%q is not the state of a file", s).
		Hintf("use the hash from the undo of an earlier change, or the base of a preview")
	return state{}, e
}

func fileState(b []byte, executable bool) state {
	if executable {
		return state{program, reeve.Hash(b)}
	}
	return state{file, reeve.Hash(b)}
}

// snapshot is the content of an entry at one time.
type snapshot struct {
	state
	data []byte      // the bytes of a file, the target of a link, the inventory of a folder
	mode fs.FileMode // mode of a file or folder
}

// blobSaver stores the bytes of a file, the target of a link or an inventory.
type blobSaver func(b []byte) error

// contentStore reads the content of entries, and keeps old content so that changes can be undone.
type contentStore struct {
	blobs      BlobStore
	maxUndo    int64
	maxEntries int
}

// readSnapshot reads the entry at a location, which may not exist. It fails with TooLarge if the entry has more than
// MaxUndo bytes. Unless save is nil, it passes everything to save that a restore needs.
func (p *contentStore) readSnapshot(ctx context.Context, loc location, save blobSaver) (snapshot, error) {
	if loc.dir == nil {
		return snapshot{state: state{kind: absent}}, nil
	}
	info, err := loc.dir.Lstat(loc.name)
	if errors.Is(err, fs.ErrNotExist) {
		return snapshot{state: state{kind: absent}}, nil
	}
	if err != nil {
		return snapshot{}, convertError(err, loc.path)
	}
	var f snapshot
	switch mode := info.Mode(); {
	case mode.IsDir():
		ib := inventoryBuilder{content: p, save: save, remaining: p.maxUndo}
		if f.data, err = ib.build(ctx, loc); err != nil {
			return f, err
		}
		f.state, f.mode = state{folder, reeve.Hash(f.data)}, mode
	case mode&fs.ModeSymlink != 0:
		target, err := loc.dir.Readlink(loc.name)
		if err != nil {
			return f, convertError(err, loc.path)
		}
		f.data, f.state = []byte(target), state{link, reeve.Hash([]byte(target))}
	default:
		b, got, err := loc.readFile(ctx, p.maxUndo)
		if err != nil {
			return f, err
		}
		f.data, f.mode, f.state = b, got.Mode(), fileState(b, got.Mode()&0o111 != 0)
	}
	if save != nil {
		return f, save(f.data)
	}
	return f, nil
}

// newBlobSaver returns a function that stores bytes in the BlobStore for a workspace.
func (p *contentStore) newBlobSaver(ctx context.Context, workspace string) blobSaver {
	return func(b []byte) error {
		hash, err := p.blobs.Put(ctx, workspace, b)
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return &reeve.Error{Code: reeve.Unavailable,
				Message: "cannot store the old content; nothing was changed", Err: err}
		case hash != reeve.Hash(b):
			return reeve.Errorf(reeve.Internal, "the old content was stored with another hash; nothing was changed")
		}
		return nil
	}
}

// getBlob returns stored bytes and checks their hash.
func (p *contentStore) getBlob(ctx context.Context, workspace, hash string) ([]byte, error) {
	b, err := p.blobs.Get(ctx, workspace, hash)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case reeve.CodeOf(err) == reeve.NotFound:
		return nil, reeve.Errorf(reeve.ToolFailed, "no stored content has the hash %s", hash).
			Hintf("use the hash in the undo of an earlier change; the content of an old change may be gone, because " +
				"the server's retention setting removes it")
	case err != nil:
		return nil, &reeve.Error{Code: reeve.Unavailable, Message: "cannot read the stored content", Err: err}
	case reeve.Hash(b) != hash:
		return nil, reeve.Errorf(reeve.Internal, "the stored content with the hash %s is damaged", hash)
	}
	return b, nil
}
