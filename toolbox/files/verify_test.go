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

// mutation is a call that changes the target in a prepared workspace.
type mutation struct {
	name, tool, target string
	args               m
}

func (fx *fixture) prepare() []mutation {
	fx.writeFile(fx.hostPath("/shared/a.txt"), "one\ntwo\n")
	fx.writeFile(fx.hostPath("/shared/d/x.txt"), "x")
	hash, _ := fx.blobs.Put(context.Background(), ws, []byte("was here\n"))
	fx.writeFile(fx.hostPath("/shared/gone/y.txt"), "y")
	undo := fx.runWithUndo("file_delete", m{"path": "/shared/gone", "recursive": true})
	var tree m
	if err := json.Unmarshal(undo.Args, &tree); err != nil {
		fx.Fatal(err)
	}
	return []mutation{
		{"create", "file_write", "/shared/new/n.txt", m{"path": "/shared/new/n.txt", "content": "new\n"}},
		{"overwrite", "file_write", "/shared/a.txt", m{"path": "/shared/a.txt", "content": "three\n",
			"overwrite": true}},
		{"edit", "file_edit", "/shared/a.txt", m{"path": "/shared/a.txt", "old": "two", "new": "2"}},
		{"delete file", "file_delete", "/shared/a.txt", m{"path": "/shared/a.txt"}},
		{"delete folder", "file_delete", "/shared/d", m{"path": "/shared/d", "recursive": true}},
		{"restore file", "file_restore", "/shared/a.txt", m{"path": "/shared/a.txt", "hash": hash}},
		{"restore folder", "file_restore", "/shared/gone", tree},
		{"copy new", "vault_copyto", "/tmp/key", m{"from": "/vault/key.txt", "to": "/tmp/key"}},
		{"copy over", "vault_copyto", "/shared/a.txt", m{"from": "/vault/key.txt", "to": "/shared/a.txt",
			"overwrite": true}},
	}
}

func forEachMutation(t *testing.T, f func(t *testing.T, fx *fixture, c mutation)) {
	for i, c := range newFixture(t).prepare() {
		t.Run(c.name, func(t *testing.T) {
			fx := newFixture(t)
			f(t, fx, fx.prepare()[i])
		})
	}
}

// disturb changes the target as another process would.
func (fx *fixture) disturb(target string) {
	if info, err := os.Stat(fx.hostPath(target)); err == nil && info.IsDir() {
		target += "/disturbed"
	}
	fx.writeFile(fx.hostPath(target), "disturbed\n")
}

// readTree returns the content of every file below dir by its name.
func readTree(t *testing.T, dir string) map[string]string {
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
	forEachMutation(t, func(t *testing.T, fx *fixture, c mutation) {
		before, puts := readTree(t, fx.home), fx.blobs.puts
		p, err := fx.tools[c.tool].Preview(context.Background(), fx.invocation(c.args))
		if err != nil {
			t.Fatal(err)
		}
		fx.encode(p)
		if p.Base == "" || !strings.Contains(p.Change, c.target) {
			t.Errorf("%+v", p)
		}
		if !reflect.DeepEqual(before, readTree(t, fx.home)) || puts != fx.blobs.puts {
			t.Error("the preview changed something")
		}
		fx.disturb(c.target)
		disturbed := readTree(t, fx.home)
		inv := fx.invocation(c.args)
		inv.Base = p.Base
		if _, err := fx.run(c.tool, inv); reeve.CodeOf(err) != reeve.Stale {
			t.Errorf("with a stale base: %v", err)
		}
		if !reflect.DeepEqual(disturbed, readTree(t, fx.home)) {
			t.Error("a stale call changed something")
		}
		fx.checkNoTempFiles()
	})
}

func TestG16_FreshBaseApplies(t *testing.T) {
	forEachMutation(t, func(t *testing.T, fx *fixture, c mutation) {
		p, err := fx.tools[c.tool].Preview(context.Background(), fx.invocation(c.args))
		if err != nil {
			t.Fatal(err)
		}
		before := readTree(t, fx.home)
		inv := fx.invocation(c.args)
		inv.Base = p.Base
		if _, err := fx.run(c.tool, inv); err != nil {
			t.Fatal(err)
		}
		if reflect.DeepEqual(before, readTree(t, fx.home)) {
			t.Error("nothing changed")
		}
		fx.checkNoTempFiles()
	})
}

func TestG16_DeletedTargetIsStale(t *testing.T) {
	forEachMutation(t, func(t *testing.T, fx *fixture, c mutation) {
		p, err := fx.tools[c.tool].Preview(context.Background(), fx.invocation(c.args))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(p.Base, "absent") {
			return
		}
		if err := os.RemoveAll(fx.hostPath(c.target)); err != nil {
			t.Fatal(err)
		}
		inv := fx.invocation(c.args)
		inv.Base = p.Base
		if _, err := fx.run(c.tool, inv); reeve.CodeOf(err) != reeve.Stale {
			t.Errorf("%v", err)
		}
	})
}

// TestG10_Verify checks that Verify after a crash returns the handler's result, undo and tokens.
func TestG10_Verify(t *testing.T) {
	forEachMutation(t, func(t *testing.T, fx *fixture, c mutation) {
		tool := fx.tools[c.tool]
		p, err := tool.Preview(context.Background(), fx.invocation(c.args))
		if err != nil {
			t.Fatal(err)
		}
		verify := func() (reeve.Outcome, string, *reeve.Invocation) {
			inv := fx.invocation(c.args)
			inv.Base = p.Base
			o, out, err := tool.Verify(context.Background(), inv)
			if err != nil {
				t.Fatal(err)
			}
			return o, fx.encode(out), inv
		}
		if o, _, inv := verify(); o != reeve.NotApplied {
			t.Errorf("before: %s", o)
		} else if changed, undo, _ := inv.Close(); changed != nil || undo != nil {
			t.Error("reported a change that was not made")
		}
		inv := fx.invocation(c.args)
		inv.Base = p.Base
		out, err := fx.run(c.tool, inv)
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
		fx.disturb(c.target)
		if o, _, _ := verify(); o != reeve.CannotTell {
			t.Errorf("disturbed: %s", o)
		}
	})
}

// TestG10_RetryAfterCrash simulates a process that crashed right before its rename. The next attempt makes the change
// and removes the temporary files.
func TestG10_RetryAfterCrash(t *testing.T) {
	forEachMutation(t, func(t *testing.T, fx *fixture, c mutation) {
		inv := fx.invocation(c.args)
		inv.Attempt = 2
		dir := filepath.Dir(fx.hostPath(c.target))
		fx.writeFile(filepath.Join(dir, newTempName(inv)), "half")
		fx.writeFile(filepath.Join(dir, newTempName(inv), "..", tempNamePrefix(inv)+"folder", "half"), "half")
		for _, e := range decode[listResult](fx,
			fx.mustRun("file_list", m{"path": filepath.ToSlash(filepath.Dir(c.target))})).
			Entries {
			if isTempName(e.Name) {
				t.Errorf("listed %s", e.Name)
			}
		}
		if out := decode[searchResult](fx, fx.mustRun("file_search", m{"query": "half"})); len(out.Matches) != 0 {
			t.Errorf("found %v", out.Matches)
		}
		if _, err := fx.run(c.tool, inv); err != nil {
			t.Fatal(err)
		}
		fx.checkNoTempFiles()
	})
}

// TestG16_ConcurrentChangeIsStale changes the target after the call read its state and before its rename.
func TestG16_ConcurrentChangeIsStale(t *testing.T) {
	forEachMutation(t, func(t *testing.T, fx *fixture, c mutation) {
		did := false
		fx.blobs.hook = func() { // the old bytes are stored between the first check and the rename
			if !did {
				did = true
				fx.disturb(c.target)
			}
		}
		_, err := fx.run(c.tool, fx.invocation(c.args))
		if !did {
			return // there were no old bytes to store
		}
		if reeve.CodeOf(err) != reeve.Stale {
			t.Errorf("%v", err)
		}
		target := c.target
		if c.name == "delete folder" {
			target += "/disturbed"
		}
		if fx.readFile(target) != "disturbed\n" {
			t.Error("the other change is lost")
		}
		fx.checkNoTempFiles()
	})
}
