package host_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/test/kit"
)

// Whatever is undone, files and folders have the permissions again that they had, but for what makes a program run as
// somebody else.
func TestO03_UndoBringsPermissionsBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := kit.RunScriptedIn(t, dir, "- {text: hello}\n")
	h.Agent("clerk", "file_write", "file_edit", "file_delete", "file_restore")
	shared := filepath.Join(dir, "workspaces", "default", "shared")
	made := map[string]fs.FileMode{"d/644": 0o644, "d/664": 0o664, "d/755": 0o755, "d/600": 0o600, "d/440": 0o440,
		"d/sub/751": 0o751, "d/sub/suid": 0o755 | fs.ModeSetuid,
		"d/sub": 0o555, "d": 0o775, "d/empty": 0o750}
	for name, mode := range made {
		if name = filepath.Join(shared, name); mode.Perm() == 0o555 || mode.Perm() == 0o775 || mode.Perm() == 0o750 {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("one"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(shared, "d/empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	chmod := func(name string, mode fs.FileMode) {
		if err := os.Chmod(filepath.Join(shared, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	see := func(when string) {
		t.Helper()
		for name, mode := range made {
			info, err := os.Lstat(filepath.Join(shared, name))
			if err != nil || info.Mode().Perm() != mode.Perm() {
				t.Fatalf("%s, %s: %v, %v, want %o", when, name, info, err, mode.Perm())
			}
		}
	}
	for name, mode := range made {
		chmod(name, mode)
	}
	chmod("d/sub", 0o755) // until nothing more is changed in it
	made["d/sub"] = 0o755
	see("at first")
	call := func(tool string, args any) *reeve.Undo {
		t.Helper()
		res := h.Call("clerk", tool, args)
		if res.IsError || res.Undo == nil {
			t.Fatalf("%s %v: %+v", tool, args, res)
		}
		return res.Undo
	}
	undo := func(u *reeve.Undo) *reeve.Undo { t.Helper(); return call(u.Tool, u.Args) }
	for name, mode := range made {
		path := "/shared/" + name
		u := call("file_delete", kit.Object{"path": path, "recursive": true})
		again := undo(u)
		see("after the deletion of " + name + " is undone")
		undo(undo(again))
		see("after that is undone and done again: " + name)
		if strings.HasSuffix(name, "empty") || name == "d" || name == "d/sub" {
			continue
		}
		u = call("file_write", kit.Object{"path": path, "content": fmt.Sprint("new ", mode), "overwrite": true})
		see("after " + name + " was written")
		if mode != 0o600 { // which needs no mention
			chmod(name, 0o640|mode.Perm()&0o111)
		}
		undo(u)
		see("after the write of " + name + " is undone")
		u = call("file_edit", kit.Object{"path": path, "old": "one", "new": "two"})
		undo(u)
		see("after the edit of " + name + " is undone")
	}
	info, err := os.Lstat(filepath.Join(shared, "d/sub/suid"))
	if err != nil || info.Mode()&fs.ModeSetuid != 0 {
		t.Errorf("it runs as its owner again: %v, %v", info.Mode(), err)
	}
	// A folder that is closed to its owner can be filled again.
	chmod("d/sub", 0o555)
	made["d/sub"] = 0o555
	u := call("file_delete", kit.Object{"path": "/shared/d", "recursive": true})
	undo(u)
	see("after the deletion of a closed folder is undone")
	chmod("d/sub", 0o755) // so that it can be removed
	// An undo that was recorded before says nothing of permissions, and does what it did.
	u = call("file_delete", kit.Object{"path": "/shared/d/644"})
	call(u.Tool, kit.Object{"path": "/shared/d/644", "hash": reeve.Hash([]byte("one")), "expect": "absent"})
	if info, err := os.Lstat(filepath.Join(shared, "d/644")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if r := h.Do("POST", "/api/agents/clerk/calls",
		kit.Object{"tool": "file_restore", "args": kit.Object{"path": "/shared/x", "hash": reeve.Hash([]byte("one")),
			"mode": "4755"}}); r.Status == 200 {
		t.Errorf("%s", r.Body)
	}
}
