package files

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"reeve"
)

// mutation is one way to call a tool that changes something, on a prepared workspace.
type mutation struct {
	name, tool, target string
	args               m
}

func (w *world) prepare() []mutation {
	w.put(w.host("/shared/a.txt"), "one\ntwo\n")
	w.put(w.host("/shared/d/x.txt"), "x")
	kept, _ := w.keep.Put(context.Background(), ws, []byte("was here\n"))
	w.put(w.host("/shared/gone/y.txt"), "y")
	undo := w.do("file_delete", m{"path": "/shared/gone", "recursive": true})
	var tree m
	if err := json.Unmarshal(undo.Args, &tree); err != nil {
		w.Fatal(err)
	}
	return []mutation{
		{"create", "file_write", "/shared/new/n.txt", m{"path": "/shared/new/n.txt", "content": "new\n"}},
		{"overwrite", "file_write", "/shared/a.txt", m{"path": "/shared/a.txt", "content": "three\n",
			"overwrite": true}},
		{"edit", "file_edit", "/shared/a.txt", m{"path": "/shared/a.txt", "old": "two", "new": "2"}},
		{"delete file", "file_delete", "/shared/a.txt", m{"path": "/shared/a.txt"}},
		{"delete folder", "file_delete", "/shared/d", m{"path": "/shared/d", "recursive": true}},
		{"restore file", "file_restore", "/shared/a.txt", m{"path": "/shared/a.txt", "hash": kept}},
		{"restore folder", "file_restore", "/shared/gone", tree},
		{"copy new", "vault_copyto", "/tmp/key", m{"from": "/vault/key.txt", "to": "/tmp/key"}},
		{"copy over", "vault_copyto", "/shared/a.txt", m{"from": "/vault/key.txt", "to": "/shared/a.txt",
			"overwrite": true}},
	}
}

func each(t *testing.T, f func(t *testing.T, w *world, c mutation)) {
	for i, c := range newWorld(t).prepare() {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			f(t, w, w.prepare()[i])
		})
	}
}

// disturb changes the target behind the tool's back.
func (w *world) disturb(target string) {
	if info, err := os.Stat(w.host(target)); err == nil && info.IsDir() {
		target += "/disturbed"
	}
	w.put(w.host(target), "disturbed\n")
}

func snapshotOf(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			all[name] = "dir"
			return err
		}
		b, err := os.ReadFile(name)
		all[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestG16_PreviewChangesNothingAndStaleBaseIsRefused(t *testing.T) {
	each(t, func(t *testing.T, w *world, c mutation) {
		before, puts := snapshotOf(t, w.home), w.keep.puts
		p, err := w.tools[c.tool].Preview(context.Background(), w.invocation(c.args))
		if err != nil {
			t.Fatal(err)
		}
		w.text(p)
		if p.Base == "" || !strings.Contains(p.Change, c.target) {
			t.Errorf("%+v", p)
		}
		if !reflect.DeepEqual(before, snapshotOf(t, w.home)) || puts != w.keep.puts {
			t.Error("the preview changed something")
		}
		w.disturb(c.target)
		disturbed := snapshotOf(t, w.home)
		inv := w.invocation(c.args)
		inv.Base = p.Base
		if _, err := w.run(c.tool, inv); reeve.CodeOf(err) != reeve.Stale {
			t.Errorf("with a stale base: %v", err)
		}
		if !reflect.DeepEqual(disturbed, snapshotOf(t, w.home)) {
			t.Error("a stale call changed something")
		}
		w.clean()
	})
}

func TestG16_FreshBaseApplies(t *testing.T) {
	each(t, func(t *testing.T, w *world, c mutation) {
		p, err := w.tools[c.tool].Preview(context.Background(), w.invocation(c.args))
		if err != nil {
			t.Fatal(err)
		}
		before := snapshotOf(t, w.home)
		inv := w.invocation(c.args)
		inv.Base = p.Base
		if _, err := w.run(c.tool, inv); err != nil {
			t.Fatal(err)
		}
		if reflect.DeepEqual(before, snapshotOf(t, w.home)) {
			t.Error("nothing changed")
		}
		w.clean()
	})
}

func TestG16_GoneTargetIsStale(t *testing.T) {
	each(t, func(t *testing.T, w *world, c mutation) {
		p, err := w.tools[c.tool].Preview(context.Background(), w.invocation(c.args))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(p.Base, "absent") {
			return
		}
		if err := os.RemoveAll(w.host(c.target)); err != nil {
			t.Fatal(err)
		}
		inv := w.invocation(c.args)
		inv.Base = p.Base
		if _, err := w.run(c.tool, inv); reeve.CodeOf(err) != reeve.Stale {
			t.Errorf("%v", err)
		}
	})
}

// TestG10_Verify sees that the look-up after a crash gives what the handler gave, undo and tokens included.
func TestG10_Verify(t *testing.T) {
	each(t, func(t *testing.T, w *world, c mutation) {
		tool := w.tools[c.tool]
		p, err := tool.Preview(context.Background(), w.invocation(c.args))
		if err != nil {
			t.Fatal(err)
		}
		verify := func() (reeve.Outcome, string, *reeve.Invocation) {
			inv := w.invocation(c.args)
			inv.Base = p.Base
			o, out, err := tool.Verify(context.Background(), inv)
			if err != nil {
				t.Fatal(err)
			}
			return o, w.text(out), inv
		}
		if o, _, inv := verify(); o != reeve.NotApplied {
			t.Errorf("before: %s", o)
		} else if changed, undo, _ := inv.Close(); changed != nil || undo != nil {
			t.Error("reported a change that was not made")
		}
		inv := w.invocation(c.args)
		inv.Base = p.Base
		out, err := w.run(c.tool, inv)
		if err != nil {
			t.Fatal(err)
		}
		o, verified, again := verify()
		if o != reeve.Applied || verified != out {
			t.Errorf("after: %s\n%s\n%s", o, verified, out)
		}
		changed, undo, _ := inv.Close()
		changed2, undo2, _ := again.Close()
		if !reflect.DeepEqual(changed, changed2) || !reflect.DeepEqual(undo, undo2) {
			t.Errorf("reported %v %s, then %v %s", changed, undo.Args, changed2, undo2.Args)
		}
		w.disturb(c.target)
		if o, _, _ := verify(); o != reeve.CannotTell {
			t.Errorf("disturbed: %s", o)
		}
	})
}

// TestG10_CutOff plays a process that died right before its rename: the next attempt does the work and clears the
// remains.
func TestG10_CutOff(t *testing.T) {
	each(t, func(t *testing.T, w *world, c mutation) {
		inv := w.invocation(c.args)
		inv.Attempt = 2
		dir := filepath.Dir(w.host(c.target))
		w.put(filepath.Join(dir, ownName(inv)), "half")
		w.put(filepath.Join(dir, ownName(inv), "..", ownNames(inv)+"folder", "half"), "half")
		for _, e := range says[listResult](w, w.ok("file_list", m{"path": filepath.ToSlash(filepath.Dir(c.target))})).
			Entries {
			if isOwn(e.Name) {
				t.Errorf("listed %s", e.Name)
			}
		}
		if out := says[searchResult](w, w.ok("file_search", m{"query": "half"})); len(out.Matches) != 0 {
			t.Errorf("found %v", out.Matches)
		}
		if _, err := w.run(c.tool, inv); err != nil {
			t.Fatal(err)
		}
		w.clean()
	})
}

// TestG16_ChangeDuringTheCall changes the target after the call looked at it and before its rename.
func TestG16_ChangeDuringTheCall(t *testing.T) {
	each(t, func(t *testing.T, w *world, c mutation) {
		did := false
		w.keep.hook = func() { // the old bytes are kept between the look and the rename
			if !did {
				did = true
				w.disturb(c.target)
			}
		}
		_, err := w.run(c.tool, w.invocation(c.args))
		if !did {
			return // nothing was there to keep
		}
		if reeve.CodeOf(err) != reeve.Stale {
			t.Errorf("%v", err)
		}
		target := c.target
		if c.name == "delete folder" {
			target += "/disturbed"
		}
		if w.get(target) != "disturbed\n" {
			t.Error("the other change is lost")
		}
		w.clean()
	})
}
