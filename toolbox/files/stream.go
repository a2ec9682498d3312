package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"reeve"
)

// StreamTarget is a file that is written as a stream, because it may be too large for memory.
type StreamTarget struct {
	Path      string
	Overwrite bool
}

// StreamResult describes a file that was written as a stream.
type StreamResult struct {
	Path    string `json:"path"`
	Size    int64  `json:"size" doc:"Bytes of the file"`
	SHA256  string `json:"sha256" doc:"Hash of the file"`
	Created bool   `json:"created" doc:"True if the file is new"`
	Note    string `json:"note,omitempty"`
}

// receiptsFolder is beside the roots of a workspace, where no tool reaches it. It has a receipt per stream.
const receiptsFolder = ".receipts"

// receiptAge is how long a receipt is kept. An operation whose outcome is looked up is younger.
const receiptAge = 7 * 24 * time.Hour

// receipt says which content an operation is about to give its final name. It proves, after a crash, that the operation
// came that far, and what to look for.
type receipt struct {
	Size  int64  `json:"size"`
	State string `json:"state"`
}

// Streams writes files that may be too large for memory.
type Streams struct {
	*fileWriter
}

// CheckStream checks the path of a stream, which must be under /shared or /tmp.
func (p *Streams) CheckStream(t StreamTarget) error {
	_, err := parseStreamPath(t.Path)
	return err
}

func parseStreamPath(path string) (vpath, error) {
	v, err := parseWritePath("path", path)
	if err == nil && v.root == projectRoot {
		err = reeve.InvalidField("/path", "is in /project", "a path under /shared or /tmp")
	}
	return v, err
}

// PreviewStream describes the file that a stream would replace.
func (p *Streams) PreviewStream(ctx context.Context, inv *reeve.Invocation, t StreamTarget) (reeve.Preview, error) {
	v, err := parseStreamPath(t.Path)
	if err != nil {
		return reeve.Preview{}, err
	}
	old, err := p.readFileSnapshotAt(ctx, inv, v)
	if err == nil {
		err = checkOverwrite(v, old, t)
	}
	if err != nil {
		return reeve.Preview{}, err
	}
	what := "a new file"
	if old.kind != absent {
		what = fmt.Sprintf("replaces %d bytes, %s", len(old.data), old)
	}
	return reeve.Preview{Change: fmt.Sprintf("write %s (%s)\n", v, what), Base: old.String()}, nil
}

func checkOverwrite(v vpath, old snapshot, t StreamTarget) error {
	_, _, err := writeContent(v, nil, t.Overwrite)(old)
	return err
}

// WriteStream writes what fill writes to a temporary file, syncs it and gives it its final name. An error of fill
// leaves everything as it was. Other calls may change files meanwhile: the workspace is locked only for the rename.
func (p *Streams) WriteStream(ctx context.Context, inv *reeve.Invocation, t StreamTarget,
	fill func(io.Writer) error) (out StreamResult, err error) {
	v, err := parseStreamPath(t.Path)
	if err != nil {
		return out, err
	}
	roots := rootSet{workspace: inv.Workspace}
	old, err := p.readFileSnapshotAt(ctx, inv, v)
	if err == nil && inv.Base != "" && inv.Base != old.String() {
		err = staleError(v)
	}
	if err == nil {
		err = checkOverwrite(v, old, t)
	}
	if err != nil {
		return out, err
	}
	loc, err := p.createParents(roots, v)
	if err != nil {
		return out, err
	}
	defer loc.close()
	if inv.Attempt > 1 {
		removeLeftovers(inv, loc)
	}
	tmp := newTempName(inv)
	defer loc.dir.Remove(tmp) // fails after the rename, which is fine
	after, size, err := p.fillFile(loc, tmp, old, fill)
	if err != nil {
		return out, err
	}
	release, err := p.locks.Wait(ctx, inv.Workspace)
	if err != nil {
		return out, err
	}
	defer release()
	if old.kind != absent {
		if err := p.newBlobSaver(ctx, inv.Workspace)(old.data); err != nil {
			return out, err
		}
	}
	if err := p.putReceipt(inv, receipt{size, after.String()}); err != nil {
		return out, convertError(err, v)
	}
	if err := p.renameTemp(ctx, loc, tmp, old); err != nil {
		return out, err
	}
	return p.newStreamResult(inv, v, changeResult{before: old.state, after: after, mode: old.permissions()}, size), nil
}

// fillFile writes a temporary file and returns its state and size.
func (p *Streams) fillFile(loc location, tmp string, old snapshot,
	fill func(io.Writer) error) (after state, size int64, err error) {
	f, err := loc.dir.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return after, 0, convertError(err, loc.path)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return after, 0, convertError(err, loc.path)
	}
	if p.onCreate != nil {
		p.onCreate(info)
	}
	hash := sha256.New()
	counter := &countingWriter{w: io.MultiWriter(f, hash)}
	if err := fill(counter); err != nil {
		return after, 0, err
	}
	if err := errors.Join(f.Chmod(choosePermissions("", old, false)), f.Sync()); err != nil {
		return after, 0, convertError(err, loc.path)
	}
	return state{file, hex.EncodeToString(hash.Sum(nil))}, counter.n, nil
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// renameTemp gives a temporary file its final name. It fails with Stale if the target no longer has the state of old.
func (p *Streams) renameTemp(ctx context.Context, loc location, tmp string, old snapshot) error {
	if err := ctx.Err(); err != nil { // an abandoned attempt must not change anything
		return err
	}
	now, err := p.readFileSnapshot(ctx, loc)
	if err != nil {
		return err
	}
	if now.state != old.state {
		return staleError(loc.path)
	}
	if err := loc.dir.Rename(tmp, loc.name); err != nil {
		return convertError(err, loc.path)
	}
	return p.syncParent(loc)
}

// newStreamResult reports the change and describes it.
func (p *Streams) newStreamResult(inv *reeve.Invocation, v vpath, d changeResult, size int64) StreamResult {
	out := StreamResult{Path: v.String(), Size: size, SHA256: d.after.hash, Created: d.before.kind == absent}
	if size > p.maxUndo { // file_delete could not store it
		out.Note = fmt.Sprintf("the file has more than %d bytes, so the call cannot be undone", p.maxUndo)
		inv.Emit(reeve.SemanticKey, "FILE")
		inv.Emit(reeve.EntityID, v.String())
		return out
	}
	reportChange(inv, v, d)
	return out
}

// VerifyStream determines whether an earlier attempt gave the file its final name.
func (p *Streams) VerifyStream(ctx context.Context, inv *reeve.Invocation, t StreamTarget) (reeve.Outcome, StreamResult,
	error) {
	v, err := parseStreamPath(t.Path)
	if err != nil {
		return reeve.CannotTell, StreamResult{}, err
	}
	loc, err := p.locate(rootSet{workspace: inv.Workspace}, v)
	if err != nil {
		return reeve.CannotTell, StreamResult{}, err
	}
	defer loc.close()
	removeLeftovers(inv, loc)
	given, found, err := p.getReceipt(inv)
	switch {
	case err != nil:
		return reeve.CannotTell, StreamResult{}, err
	case !found: // the receipt is written before the rename
		return reeve.NotApplied, StreamResult{}, nil
	}
	now, err := hashEntry(ctx, loc)
	switch {
	case err != nil:
		return reeve.CannotTell, StreamResult{}, err
	case now == given.State:
		after, err := parseState(given.State)
		if err != nil {
			return reeve.CannotTell, StreamResult{}, err
		}
		return reeve.Applied, p.newStreamResult(inv, v, changeResult{before: parseBase(inv.Base), after: after},
			given.Size), nil
	case inv.Base != "" && now == inv.Base:
		return reeve.NotApplied, StreamResult{}, nil
	}
	return reeve.CannotTell, StreamResult{}, nil
}

// hashEntry returns the state of a file of any size, or absent.
func hashEntry(ctx context.Context, loc location) (string, error) {
	f, info, err := loc.openFile()
	if errors.Is(err, fs.ErrNotExist) || reeve.CodeOf(err) == reeve.NotFound {
		return string(absent), nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	buffer := make([]byte, 1<<20)
	for {
		n, err := f.Read(buffer)
		hash.Write(buffer[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return "", convertError(err, loc.path)
		}
	}
	s := state{file, hex.EncodeToString(hash.Sum(nil))}
	if info.Mode()&0o111 != 0 {
		s.kind = program
	}
	return s.String(), nil
}

func receiptName(inv *reeve.Invocation) string { return reeve.Hash([]byte(inv.Operation))[:32] }

// putReceipt stores the receipt of an operation and syncs it. It removes old ones.
func (p *Streams) putReceipt(inv *reeve.Invocation, r receipt) error {
	dir, err := p.openRoot(rootSet{workspace: inv.Workspace}, receiptsFolder)
	if err != nil {
		return err
	}
	defer dir.Close()
	removeOldReceipts(dir)
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	name := receiptName(inv)
	tmp := name + "-" + reeve.RandomSecret(8)
	defer dir.Remove(tmp) // fails after the rename, which is fine
	if err := p.writeFile(dir, tmp, b, fileMode); err != nil {
		return err
	}
	if err := dir.Rename(tmp, name); err != nil {
		return err
	}
	return syncDir(dir)
}

// getReceipt returns the receipt of an operation, if there is one.
func (p *Streams) getReceipt(inv *reeve.Invocation) (r receipt, found bool, err error) {
	dir, err := p.openRoot(rootSet{workspace: inv.Workspace}, receiptsFolder)
	if err != nil {
		return r, false, err
	}
	defer dir.Close()
	b, err := dir.ReadFile(receiptName(inv))
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return r, false, reeve.Errorf(reeve.Unavailable, "cannot read the receipt of the operation: %v",
			stripPaths(err))
	}
	return r, true, nil
}

// removeOldReceipts removes the receipts whose operations ended long ago. Failures do not matter.
func removeOldReceipts(dir *os.Root) {
	f, err := dir.Open(".")
	if err != nil {
		return
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && reeve.Now().Sub(info.ModTime()) > receiptAge {
			dir.Remove(e.Name())
		}
	}
}
