package files

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"reeve"
)

// kind is what is found at a place.
type kind string

// The kinds. They begin the names of states.
const (
	absent  kind = "absent"
	file    kind = "sha256"   // followed by the hash of its bytes
	program kind = "sha256+x" // the same, of a file that may be executed
	link    kind = "link"     // followed by the hash of its target
	folder  kind = "dir"      // followed by the hash of its inventory
)

// state names what is at a place: two states are equal exactly when what is there is. The hash is the address under
// which the [Keeper] has it, if it was kept.
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

// parseState parses the name of a state. A bare hash means a file.
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
	e := reeve.Errorf(reeve.Validation, "%q does not name a state of a file", s).
		Hintf("use the undo of an earlier change, or the base of a preview")
	return state{}, e
}

func fileState(b []byte, executable bool) state {
	if executable {
		return state{program, reeve.Hash(b)}
	}
	return state{file, reeve.Hash(b)}
}

// found is what was found at a place.
type found struct {
	state
	data []byte      // the bytes of a file, the target of a link, the inventory of a folder
	mode fs.FileMode // of a file or folder
}

// keepBytes is what look hands everything it finds; nil keeps nothing.
type keepBytes func(b []byte) error

// look finds out what is at a place, reading at most MaxKeep bytes of it, and hands keep all that restoring it would
// need.
func (p *Pack) look(ctx context.Context, pl place, keep keepBytes) (found, error) {
	if pl.dir == nil {
		return found{state: state{kind: absent}}, nil
	}
	info, err := pl.dir.Lstat(pl.name)
	if errors.Is(err, fs.ErrNotExist) {
		return found{state: state{kind: absent}}, nil
	}
	if err != nil {
		return found{}, fault(err, pl.path)
	}
	var f found
	switch mode := info.Mode(); {
	case mode.IsDir():
		w := walker{pack: p, keep: keep, left: p.cfg.MaxKeep}
		if f.data, err = w.inventory(ctx, pl); err != nil {
			return f, err
		}
		f.state, f.mode = state{folder, reeve.Hash(f.data)}, mode
	case mode&fs.ModeSymlink != 0:
		target, err := pl.dir.Readlink(pl.name)
		if err != nil {
			return f, fault(err, pl.path)
		}
		f.data, f.state = []byte(target), state{link, reeve.Hash([]byte(target))}
	default:
		b, got, err := pl.bytes(ctx, p.cfg.MaxKeep)
		if err != nil {
			return f, err
		}
		f.data, f.mode, f.state = b, got.Mode(), fileState(b, got.Mode()&0o111 != 0)
	}
	if keep != nil {
		return f, keep(f.data)
	}
	return f, nil
}

// keeper keeps bytes for one workspace.
func (p *Pack) keeper(ctx context.Context, workspace string) keepBytes {
	return func(b []byte) error {
		hash, err := p.cfg.Keep.Put(ctx, workspace, b)
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return &reeve.Error{Code: reeve.Unavailable,
				Message: "the old bytes could not be kept, so nothing was changed", Err: err}
		case hash != reeve.Hash(b):
			return reeve.Errorf(reeve.Internal, "the old bytes were kept under another hash, so nothing was changed")
		}
		return nil
	}
}

// kept gives kept bytes back, and only if they are what they were.
func (p *Pack) kept(ctx context.Context, workspace, hash string) ([]byte, error) {
	b, err := p.cfg.Keep.Get(ctx, workspace, hash)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case reeve.CodeOf(err) == reeve.NotFound:
		return nil, reeve.Errorf(reeve.ToolFailed, "nothing is kept under the hash %s", hash).
			Hintf("use the undo of an earlier change; what an old one needs may be gone, if the server's setting " +
				"retention says so")
	case err != nil:
		return nil, &reeve.Error{Code: reeve.Unavailable, Message: "the old bytes could not be read", Err: err}
	case reeve.Hash(b) != hash:
		return nil, reeve.Errorf(reeve.Internal, "the bytes kept under %s are not what they were", hash)
	}
	return b, nil
}
