package files

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"reeve"
)

type restoreArgs struct {
	Path   string `json:"path" minLength:"1" maxLength:"4096" doc:"Path to restore to, under /shared, /tmp or /project"`
	Hash   string `json:"hash" minLength:"1" maxLength:"80" doc:"Hash or state from the undo of an earlier change"`
	Expect string `json:"expect,omitempty" maxLength:"80" doc:"Restore only over this state. Set by undo"`
	Mode   string `json:"mode,omitempty" pattern:"^[0-7]{3}$" doc:"Permissions such as 644. Set by undo"`
}

type restoreResult struct {
	Path    string   `json:"path"`
	State   string   `json:"state" doc:"New state of the path"`
	Changed bool     `json:"changed"`
	Skipped []string `json:"skipped,omitempty" doc:"Paths not restored: links and, in a project, .git"`
	commitInfo
}

// restorer is the tool that writes stored content back.
type restorer struct {
	*fileWriter
}

func (p *restorer) restoreTool() reeve.Tool {
	t := newTool("file_restore", "Restore file",
		"Restore what an earlier change replaced or deleted. Get the hash from the undo of that change. "+
			"The current contents are kept, so the restore can be undone.", capWrite, reeve.Verifiable, writeTimeout)
	t.Identity = []string{"path", "hash"}
	t.Check = newPathCheck(p.projectAccess, func(in restoreArgs) (vpath, error) {
		v, _, err := parseRestoreArgs(in)
		return v, err
	})
	t.Preview = p.previewRestore
	t.Verify = p.verifyRestore
	return reeve.MustTool(t, p.restore)
}

func parseRestoreArgs(in restoreArgs) (vpath, state, error) {
	v, err := parseWritePath("path", in.Path)
	if err != nil {
		return v, state{}, err
	}
	s, err := parseState(in.Hash)
	if err == nil && s.kind == absent {
		err = reeve.Errorf(reeve.Validation, "the state absent cannot be restored").Hintf("use file_delete")
	}
	return v, s, err
}

// restoreData is the content that a restore writes.
type restoreData struct {
	state
	data    []byte            // content of a file, or target of a link
	records []inventoryRecord // content of a folder, without skipped entries
	skipped []string
}

// getRestoreData returns the stored content with the state want, to be restored at v.
func (p *restorer) getRestoreData(ctx context.Context, workspace string, v vpath, want state) (restoreData, error) {
	src := restoreData{state: want}
	b, err := p.getBlob(ctx, workspace, want.hash)
	if err != nil {
		return src, err
	}
	switch src.data = b; want.kind {
	case link:
		if !staysInside(v.names, string(b)) {
			return src, reeve.Errorf(reeve.Denied, "the link at %s pointed outside its root and cannot be restored", v)
		}
	case folder:
		records, err := parseInventory(b)
		if err != nil {
			return src, err
		}
		if len(records) > p.maxEntries {
			return src, reeve.Errorf(reeve.TooLarge, "the stored folder has more than %d entries", p.maxEntries)
		}
		for _, r := range records {
			rel, _ := r.unquoteNames()
			inGit := v.root == projectRoot && slices.ContainsFunc(strings.Split(rel, "/"), isGitDir)
			switch {
			case inGit && !isGitDir(path.Base(rel)): // skipped with its .git folder
			case inGit, r.Kind == link: // several links together can lead outside where each alone does not
				src.skipped = append(src.skipped, v.String()+"/"+rel)
			default:
				src.records = append(src.records, r)
			}
		}
		if src.data, err = json.Marshal(src.records); err != nil {
			return src, reeve.Errorf(reeve.Internal, "cannot encode the inventory of the stored folder")
		}
		src.hash = reeve.Hash(src.data)
	case absent, file, program:
	}
	return src, nil
}

// unquoteNames returns the relative path and the link target of a record.
func (r inventoryRecord) unquoteNames() (rel, target string) {
	rel, _ = strconv.Unquote(r.Path) // parseInventory checked it
	target, _ = strconv.Unquote(r.Target)
	return rel, target
}

func (p *restorer) restore(ctx context.Context, in restoreArgs) (restoreResult, error) {
	v, want, err := parseRestoreArgs(in)
	if err != nil {
		return restoreResult{}, err
	}
	inv := reeve.InvocationFrom(ctx)
	src, err := p.getRestoreData(ctx, inv.Workspace, v, want)
	if err != nil {
		return restoreResult{}, err
	}
	roots, finish, err := p.openForWriting(ctx, inv, v, "file_restore")
	if err != nil {
		return restoreResult{}, err
	}
	var d changeResult
	if src.kind == file || src.kind == program {
		d, err = p.replace(ctx, inv, roots, change{path: v, base: inv.Base, newContent: restoreContent(v, in, src),
			mode: in.Mode})
	} else {
		d, err = p.createFolderOrLink(ctx, inv, roots, v, in, src)
	}
	s := finish(err == nil && d.before != d.after)
	if err != nil {
		return restoreResult{}, err
	}
	reportChange(inv, v, d)
	return newRestoreResult(v, d, src, s), nil
}

func newRestoreResult(v vpath, d changeResult, src restoreData, s commitInfo) restoreResult {
	return restoreResult{Path: v.String(), State: d.after.String(), Changed: d.before != d.after, Skipped: src.skipped,
		commitInfo: s}
}

// restoreContent returns the content function of a change that restores a file.
func restoreContent(v vpath, in restoreArgs, src restoreData) contentFunc {
	return func(old snapshot) ([]byte, bool, error) {
		if in.Expect != "" && in.Expect != old.String() {
			return nil, false, staleError(v)
		}
		return src.data, src.kind == program, nil
	}
}

// checkRestoreTarget checks that a folder or link with the state want can be restored at v: nothing exists at v, or an
// entry with the same state. now is the state at v.
func checkRestoreTarget(v vpath, in restoreArgs, base string, now, want state) error {
	switch {
	case base != "" && base != now.String(), in.Expect != "" && in.Expect != now.String():
		return staleError(v)
	case now.kind != absent && now != want:
		return reeve.Errorf(reeve.Conflict, "%s already exists with other content", v).
			Hintf("delete it first, or restore to another path")
	}
	return nil
}

// createFolderOrLink restores a folder or link. It creates it with a temporary name and then renames it.
func (p *restorer) createFolderOrLink(ctx context.Context, inv *reeve.Invocation, roots rootSet, v vpath,
	in restoreArgs,
	src restoreData) (changeResult, error) {
	release, err := p.locks.Wait(ctx, inv.Workspace)
	if err != nil {
		return changeResult{}, err
	}
	defer release()
	loc, err := p.locate(roots, v)
	if err != nil {
		return changeResult{}, err
	}
	defer func() { loc.close() }()
	now, err := p.readSnapshot(ctx, loc, nil)
	if err == nil {
		err = checkRestoreTarget(v, in, inv.Base, now.state, src.state)
	}
	d := changeResult{before: now.state, after: src.state}
	if err != nil || d.before == d.after {
		return d, err
	}
	if loc.dir == nil {
		if loc, err = p.createParents(roots, v); err != nil {
			return d, err
		}
	}
	if inv.Attempt > 1 {
		removeLeftovers(inv, loc)
	}
	tmp := location{dir: loc.dir, name: newTempName(inv), path: v}
	defer loc.dir.RemoveAll(tmp.name) // does nothing after the rename
	if src.kind == link {
		err = loc.dir.Symlink(string(src.data), tmp.name)
	} else {
		err = p.createFolder(ctx, inv.Workspace, tmp, src.records, parsePermissions(in.Mode, dirMode))
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return d, convertError(err, v)
	}
	if _, err := loc.lstat(); !errors.Is(err, fs.ErrNotExist) {
		return d, staleError(v)
	}
	if err := loc.dir.Rename(tmp.name, loc.name); err != nil {
		return d, convertError(err, v)
	}
	return d, p.syncParent(loc)
}

// createFolder creates a folder and the entries of its inventory.
func (p *restorer) createFolder(ctx context.Context, workspace string, at location, records []inventoryRecord,
	mode fs.FileMode) error {
	if err := at.dir.Mkdir(at.name, dirMode); err != nil {
		return err
	}
	top, err := openSubdir(at.dir, at.name, at.path)
	if err != nil {
		return err
	}
	defer top.Close()
	remaining := p.maxUndo
	for _, r := range records {
		if err := ctx.Err(); err != nil {
			return err
		}
		rel, target := r.unquoteNames()
		switch r.Kind {
		case folder:
			err = top.Mkdir(rel, dirMode)
		case link:
			err = top.Symlink(target, rel)
		default:
			var b []byte
			if b, err = p.getBlob(ctx, workspace, r.Hash); err != nil {
				return err
			}
			if remaining -= int64(len(b)); remaining < 0 {
				return tooLargeError(at.path, p.maxUndo)
			}
			err = p.writeFile(top, rel, b, parsePermissions(r.Mode, defaultPermissions(r.Kind)))
		}
		if err != nil {
			return err
		}
	}
	return finishFolders(top, records, mode)
}

// finishFolders sets the permissions of every folder in an inventory and syncs the folder. It starts with the innermost
// folders, because the permissions of an outer one may prevent access.
func finishFolders(top *os.Root, records []inventoryRecord, mode fs.FileMode) error {
	for _, r := range slices.Backward(records) {
		if r.Kind != folder {
			continue
		}
		rel, _ := r.unquoteNames()
		sub, err := top.OpenRoot(rel + "/.")
		if err != nil {
			return err
		}
		err = errors.Join(sub.Chmod(".", parsePermissions(r.Mode, dirMode)), syncDir(sub))
		sub.Close()
		if err != nil {
			return err
		}
	}
	return errors.Join(top.Chmod(".", mode), syncDir(top))
}

func (p *restorer) verifyRestore(ctx context.Context, inv *reeve.Invocation) (reeve.Outcome, any, error) {
	in, err := reeve.Args[restoreArgs](inv)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	v, want, err := parseRestoreArgs(in)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	src, err := p.getRestoreData(ctx, inv.Workspace, v, want)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	d := changeResult{before: parseBase(inv.Base), after: src.state, size: len(src.data)}
	o, s, err := p.verifyChange(ctx, inv, v, d, inv.Base, "file_restore")
	return o, newRestoreResult(v, d, src, s), err
}
