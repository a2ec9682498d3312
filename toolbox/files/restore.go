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
	Mode   string `json:"mode,omitempty" pattern:"^[0-7]{3}$" doc:"Permissions such as 644. Default: unchanged, or owner only. Set by undo"`
}

type restoreResult struct {
	Path    string   `json:"path"`
	State   string   `json:"state" doc:"New state of the path"`
	Changed bool     `json:"changed"`
	Skipped []string `json:"skipped,omitempty" doc:"Paths not restored: links and, in a project, .git"`
	saved
}

func (p *Pack) restoreTool() reeve.Tool {
	t := declare("file_restore", "Restore file",
		"Restore what an earlier change replaced or deleted. Get the hash from the undo of that change. "+
			"The current contents are kept, so the restore can be undone.", capWrite, reeve.Verifiable, writeTime)
	t.Identity = []string{"path", "hash"}
	t.Check = checks(p, func(in restoreArgs) (vpath, error) {
		v, _, err := restorePath(in)
		return v, err
	})
	t.Preview = p.previewRestore
	t.Verify = p.verifyRestore
	return reeve.MustTool(t, p.restore)
}

func restorePath(in restoreArgs) (vpath, state, error) {
	v, err := targetPath("path", in.Path)
	if err != nil {
		return v, state{}, err
	}
	s, err := parseState(in.Hash)
	if err == nil && s.kind == absent {
		err = reeve.Errorf(reeve.Validation, "there is nothing to restore").Hintf("use file_delete")
	}
	return v, s, err
}

// goods is what a restore puts down.
type goods struct {
	state
	data    []byte   // of a file or link
	records []record // of a folder, without what is skipped
	skipped []string
}

// fetch gets what a restore is to put down.
func (p *Pack) fetch(ctx context.Context, workspace string, v vpath, want state) (goods, error) {
	g := goods{state: want}
	b, err := p.kept(ctx, workspace, want.hash)
	if err != nil {
		return g, err
	}
	switch g.data = b; want.kind {
	case link:
		if !staysInside(v.names, string(b)) {
			return g, reeve.Errorf(reeve.Denied, "the link at %s led out of its root, so it is not made again", v)
		}
	case folder:
		records, err := readInventory(b)
		if err != nil {
			return g, err
		}
		if len(records) > p.cfg.MaxEntries {
			return g, reeve.Errorf(reeve.TooLarge, "the kept folder has more than %d entries", p.cfg.MaxEntries)
		}
		for _, r := range records {
			rel, _ := r.names()
			git := v.root == projectRoot && slices.ContainsFunc(strings.Split(rel, "/"), isGit)
			switch {
			case git && !isGit(path.Base(rel)): // it goes with the folder that it is in
			case git, r.Kind == link: // links of one folder can lead out together where each alone does not
				g.skipped = append(g.skipped, v.String()+"/"+rel)
			default:
				g.records = append(g.records, r)
			}
		}
		if g.data, err = json.Marshal(g.records); err != nil {
			return g, reeve.Errorf(reeve.Internal, "the kept folder cannot be named")
		}
		g.hash = reeve.Hash(g.data)
	case absent, file, program:
	}
	return g, nil
}

func (r record) names() (rel, target string) {
	rel, _ = strconv.Unquote(r.Path) // readInventory saw that it can be
	target, _ = strconv.Unquote(r.Target)
	return rel, target
}

func (p *Pack) restore(ctx context.Context, in restoreArgs) (restoreResult, error) {
	v, want, err := restorePath(in)
	if err != nil {
		return restoreResult{}, err
	}
	inv := reeve.InvocationFrom(ctx)
	g, err := p.fetch(ctx, inv.Workspace, v, want)
	if err != nil {
		return restoreResult{}, err
	}
	on, leave, err := p.working(ctx, inv, v, "file_restore")
	if err != nil {
		return restoreResult{}, err
	}
	var d done
	if g.kind == file || g.kind == program {
		d, err = p.replace(ctx, inv, on, change{path: v, base: inv.Base, next: restoring(v, in, g), mode: in.Mode})
	} else {
		d, err = p.plant(ctx, inv, on, v, in, g)
	}
	s := leave(err == nil && d.before != d.after)
	if err != nil {
		return restoreResult{}, err
	}
	report(inv, v, d)
	return restored(v, d, g, s), nil
}

func restored(v vpath, d done, g goods, s saved) restoreResult {
	return restoreResult{Path: v.String(), State: d.after.String(), Changed: d.before != d.after, Skipped: g.skipped,
		saved: s}
}

func restoring(v vpath, in restoreArgs, g goods) func(found) ([]byte, bool, error) {
	return func(old found) ([]byte, bool, error) {
		if in.Expect != "" && in.Expect != old.String() {
			return nil, false, movedOn(v)
		}
		return g.data, g.kind == program, nil
	}
}

// vacant sees whether a folder or link can be put at a place, where nothing may be, or exactly it.
func vacant(v vpath, in restoreArgs, base string, now, g state) error {
	switch {
	case base != "" && base != now.String(), in.Expect != "" && in.Expect != now.String():
		return movedOn(v)
	case now.kind != absent && now != g:
		return reeve.Errorf(reeve.Conflict, "there is something else at %s", v).
			Hintf("delete it first, or restore to another path")
	}
	return nil
}

// plant puts a folder or link back: all of it beside the target, then one rename.
func (p *Pack) plant(ctx context.Context, inv *reeve.Invocation, on ground, v vpath, in restoreArgs,
	g goods) (done, error) {
	release, err := p.locks.Wait(ctx, inv.Workspace)
	if err != nil {
		return done{}, err
	}
	defer release()
	pl, err := p.at(on, v)
	if err != nil {
		return done{}, err
	}
	defer func() { pl.close() }()
	now, err := p.look(ctx, pl, nil)
	if err == nil {
		err = vacant(v, in, inv.Base, now.state, g.state)
	}
	d := done{before: now.state, after: g.state}
	if err != nil || d.before == d.after {
		return d, err
	}
	if pl.dir == nil {
		if pl, err = p.makeWay(on, v); err != nil {
			return d, err
		}
	}
	if inv.Attempt > 1 {
		sweep(inv, pl)
	}
	aside := place{dir: pl.dir, name: ownName(inv), path: v}
	defer pl.dir.RemoveAll(aside.name) // gone already when the rename was made
	if g.kind == link {
		err = pl.dir.Symlink(string(g.data), aside.name)
	} else {
		err = p.grow(ctx, inv.Workspace, aside, g.records, permissions(in.Mode, dirMode))
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return d, fault(err, v)
	}
	if _, err := pl.lstat(); !errors.Is(err, fs.ErrNotExist) {
		return d, movedOn(v)
	}
	if err := pl.dir.Rename(aside.name, pl.name); err != nil {
		return d, fault(err, v)
	}
	return d, p.settled(pl)
}

// grow makes a folder from its inventory.
func (p *Pack) grow(ctx context.Context, workspace string, at place, records []record, mode fs.FileMode) error {
	if err := at.dir.Mkdir(at.name, dirMode); err != nil {
		return err
	}
	top, err := enter(at.dir, at.name, at.path)
	if err != nil {
		return err
	}
	defer top.Close()
	left := p.cfg.MaxKeep
	for _, r := range records {
		if err := ctx.Err(); err != nil {
			return err
		}
		rel, target := r.names()
		switch r.Kind {
		case folder:
			err = top.Mkdir(rel, dirMode)
		case link:
			err = top.Symlink(target, rel)
		default:
			var b []byte
			if b, err = p.kept(ctx, workspace, r.Hash); err != nil {
				return err
			}
			if left -= int64(len(b)); left < 0 {
				return tooLarge(at.path, p.cfg.MaxKeep)
			}
			err = p.writeFile(top, rel, b, permissions(r.Mode, usual(r.Kind)))
		}
		if err != nil {
			return err
		}
	}
	return finish(top, records, mode)
}

// finish flushes every folder that an inventory filled, and gives it the permissions it had: from the inmost out, since
// they may close it.
func finish(top *os.Root, records []record, mode fs.FileMode) error {
	for _, r := range slices.Backward(records) {
		if r.Kind != folder {
			continue
		}
		rel, _ := r.names()
		sub, err := top.OpenRoot(rel + "/.")
		if err != nil {
			return err
		}
		err = errors.Join(sub.Chmod(".", permissions(r.Mode, dirMode)), flush(sub))
		sub.Close()
		if err != nil {
			return err
		}
	}
	return errors.Join(top.Chmod(".", mode), flush(top))
}

func (p *Pack) verifyRestore(ctx context.Context, inv *reeve.Invocation) (reeve.Outcome, any, error) {
	in, err := reeve.Args[restoreArgs](inv)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	v, want, err := restorePath(in)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	g, err := p.fetch(ctx, inv.Workspace, v, want)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	d := done{before: baseState(inv.Base), after: g.state, size: len(g.data)}
	o, s, err := p.settle(ctx, inv, v, d, inv.Base, "file_restore")
	return o, restored(v, d, g, s), err
}
