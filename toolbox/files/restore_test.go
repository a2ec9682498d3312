package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reeve"
)

func TestO03_DeleteAndRestore(t *testing.T) {
	w := newWorld(t)
	binary := string([]byte{0, 255, 254, '\n'})
	w.put(w.host("/shared/d/a.txt"), "a")
	w.put(w.host("/shared/d/sub/b.bin"), binary)
	w.put(w.host("/shared/d/sub/\xff\xfe"), "strange name")
	w.mkdir(w.host("/shared/d/empty"))
	w.put(w.host("/shared/d/run.sh"), "#!/bin/sh\n")
	if err := os.Chmod(w.host("/shared/d/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.link("a.txt", w.host("/shared/d/inner"))
	w.link("/etc/passwd", w.host("/shared/d/outer"))
	w.refuse(reeve.ToolFailed, "file_delete", m{"path": "/shared/d"})
	w.refuse(reeve.Denied, "file_delete", m{"path": "/shared", "recursive": true})
	w.refuse(reeve.ToolFailed, "file_delete", m{"path": "/shared/none"})
	undo := w.do("file_delete", m{"path": "/shared/d", "recursive": true})
	w.absent("/shared/d")
	w.clean()
	inv := w.invocation(undo.Args)
	out, err := w.run(undo.Tool, inv)
	if err != nil {
		t.Fatal(err)
	}
	r := says[restoreResult](w, out)
	// links are not made again
	if len(r.Skipped) != 2 || r.Skipped[0] != "/shared/d/inner" || r.Skipped[1] != "/shared/d/outer" {
		t.Errorf("skipped %v", r.Skipped)
	}
	if w.get("/shared/d/a.txt") != "a" || w.get("/shared/d/sub/b.bin") != binary ||
		w.get("/shared/d/sub/\xff\xfe") != "strange name" {
		t.Error("not as it was")
	}
	if info, err := os.Stat(w.host("/shared/d/run.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Error("not a program any more", err)
	}
	if info, err := os.Stat(w.host("/shared/d/empty")); err != nil || !info.IsDir() {
		t.Error("the empty folder is gone", err)
	}
	w.absent("/shared/d/inner")
	w.absent("/shared/d/outer")
	_, again, _ := inv.Close()
	w.undo(again)
	w.absent("/shared/d")
	for _, mode := range []os.FileMode{0o600, 0o755} {
		w.put(w.host("/shared/f"), "f")
		if err := os.Chmod(w.host("/shared/f"), mode); err != nil {
			t.Fatal(err)
		}
		w.undo(w.do("file_delete", m{"path": "/shared/f"}))
		if info, err := os.Stat(w.host("/shared/f")); err != nil || info.Mode()&0o100 != mode&0o100 ||
			w.get("/shared/f") != "f" {
			t.Error("not as it was", info, err)
		}
		w.ok("file_delete", m{"path": "/shared/f"})
	}
	w.link("x/y", w.host("/shared/ln"))
	w.undo(w.do("file_delete", m{"path": "/shared/ln"}))
	if s, err := os.Readlink(w.host("/shared/ln")); err != nil || s != "x/y" {
		t.Error(s, err)
	}
	w.clean()
}

func TestO03_RestoreRefusesWhatWasNotKept(t *testing.T) {
	w := newWorld(t)
	w.refuse(reeve.ToolFailed, "file_restore", m{"path": "/shared/a", "hash": reeve.Hash([]byte("never"))})
	for _, bad := range []string{"absent", "sha256:12", "dir:../../x", strings.Repeat("g", 64), "link:"} {
		w.refuse(reeve.Validation, "file_restore", m{"path": "/shared/a", "hash": bad})
	}
	// Bytes that an agent wrote can be named as a folder or a link. They lead nowhere.
	for _, evil := range []string{`[{"path":"\"../../x\"","kind":"dir"}]`, `[{"path":"\"/etc/x\"","kind":"dir"}]`,
		`[{"path":"\"a/.reeve-1\"","kind":"dir"}]`,
		`[{"path":"x","kind":"dir"}]`, `[{"path":"\"x\"","kind":"fifo"}]`, `{}`, "x"} {
		hash, _ := w.keep.Put(context.Background(), ws, []byte(evil))
		w.refuse(reeve.Validation, "file_restore", m{"path": "/shared/a", "hash": "dir:" + hash})
	}
	for _, target := range []string{"/etc/passwd", "../vault/key.txt", "a/../../vault"} {
		hash, _ := w.keep.Put(context.Background(), ws, []byte(target))
		w.refuse(reeve.Denied, "file_restore", m{"path": "/shared/a", "hash": "link:" + hash})
	}
	through, _ := w.keep.Put(context.Background(), ws,
		[]byte(`[{"path":"\"l\"","kind":"link","target":"\"..\""},{"path":"\"l/escaped\"","kind":"dir"}]`))
	if _, err := w.run("file_restore", w.invocation(m{"path": "/shared/a", "hash": "dir:" + through})); err == nil {
		t.Error("restored through a link")
	}
	w.absent("/shared/escaped")
	w.keep.kept[ws+"/"+reeve.Hash([]byte("good"))] = []byte("rotten")
	w.refuse(reeve.Internal, "file_restore", m{"path": "/shared/a", "hash": reeve.Hash([]byte("good"))})
	w.absent("/shared/a")
	w.outsideIntact()
	w.clean()
}

func TestO03_Limits(t *testing.T) {
	w := newWorld(t)
	w.limit(Config{MaxFile: 10, MaxKeep: 20, MaxEntries: 3})
	w.refuse(reeve.TooLarge, "file_write", m{"path": "/shared/a", "content": "12345678901"})
	w.ok("file_write", m{"path": "/shared/a", "content": "1234567890"})
	w.refuse(reeve.TooLarge, "file_edit", m{"path": "/shared/a", "old": "0", "new": "00"})
	w.put(w.host("/shared/big"), strings.Repeat("x", 21))
	w.refuse(reeve.TooLarge, "file_delete", m{"path": "/shared/big"})
	w.refuse(reeve.TooLarge, "file_write", m{"path": "/shared/big", "content": "x", "overwrite": true})
	w.put(w.host("/vault/big"), strings.Repeat("x", 11))
	w.refuse(reeve.TooLarge, "vault_copyto", m{"from": "/vault/big", "to": "/shared/x"})
	for _, n := range []string{"1", "2", "3", "4"} {
		w.mkdir(w.host("/shared/many/" + n))
	}
	w.refuse(reeve.TooLarge, "file_delete", m{"path": "/shared/many", "recursive": true})
	w.put(w.host("/shared/fat/a"), strings.Repeat("x", 15))
	w.put(w.host("/shared/fat/b"), strings.Repeat("x", 15))
	w.refuse(reeve.TooLarge, "file_delete", m{"path": "/shared/fat", "recursive": true})
	w.clean()
	for _, c := range []Config{{}, {Dir: t.TempDir()}, {Dir: t.TempDir(), Keep: w.keep, MaxFile: -1},
		{Dir: filepath.Join(w.top, "reeve.db"), Keep: w.keep}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

func TestO03_CanceledCallsChangeNothing(t *testing.T) {
	w := newWorld(t)
	w.put(w.host("/shared/a.txt"), "secret")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	before, _ := w.keep.Put(ctx, ws, []byte("old"))
	for tool, args := range everyTool("/shared/a.txt") {
		if tool == "file_list" {
			continue
		}
		args["hash"] = before
		if _, err := w.tools[tool].Handler(ctx, w.invocation(args)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", tool, err)
		}
	}
	if !bytes.Equal([]byte(w.get("/shared/a.txt")), []byte("secret")) {
		t.Error("changed after it was canceled")
	}
	w.clean()
}

// TestO03_OneCreatorWins lets two packs, as two processes would, make the same new file: one does, the other is told.
func TestO03_OneCreatorWins(t *testing.T) {
	w := newWorld(t)
	other, err := New(Config{Dir: w.pack.cfg.Dir, Keep: w.keep})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		v := fmt.Sprintf("/shared/%d", i)
		var group sync.WaitGroup
		errs := make([]error, 2)
		for n, p := range []*Pack{w.pack, other} {
			group.Go(func() {
				_, errs[n] = p.writeTool().
					Handler(context.Background(), w.invocation(m{"path": v, "content": fmt.Sprint(n)}))
			})
		}
		group.Wait()
		won := "0"
		if errs[0] != nil {
			won = "1"
		}
		if (errs[0] == nil) == (errs[1] == nil) || w.get(v) != won {
			t.Fatalf("%v, and the file holds %q", errs, w.get(v))
		}
	}
	w.clean()
}

func TestO03_RestoreOverAProgram(t *testing.T) {
	w := newWorld(t)
	hash, _ := w.keep.Put(context.Background(), ws, []byte("plain"))
	w.put(w.host("/shared/p"), "program")
	if err := os.Chmod(w.host("/shared/p"), 0o755); err != nil {
		t.Fatal(err)
	}
	undo := w.do("file_restore", m{"path": "/shared/p", "hash": hash})
	if info, err := os.Stat(w.host("/shared/p")); err != nil || info.Mode()&0o111 != 0 {
		t.Error("still a program", err)
	}
	w.undo(undo)
	if info, err := os.Stat(w.host("/shared/p")); err != nil || info.Mode()&0o100 == 0 ||
		w.get("/shared/p") != "program" {
		t.Error("not a program again", err)
	}
}

// TestO03_CanceledDuringTheCall ends the call's time between keeping and changing.
func TestO03_CanceledDuringTheCall(t *testing.T) {
	w := newWorld(t)
	w.put(w.host("/shared/a.txt"), "secret")
	hash, _ := w.keep.Put(context.Background(), ws, []byte("old"))
	for tool, args := range everyTool("/shared/a.txt") {
		if w.tools[tool].Effect == reeve.Read {
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		w.keep.hook = cancel
		if args["hash"] != nil {
			args["hash"] = hash
		}
		if _, err := w.tools[tool].Handler(ctx, w.invocation(args)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", tool, err)
		}
		cancel()
	}
	if w.get("/shared/a.txt") != "secret" {
		t.Error("changed after it was canceled")
	}
	w.clean()
}
