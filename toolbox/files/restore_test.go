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
	fx := newFixture(t)
	binary := string([]byte{0, 255, 254, '\n'})
	fx.writeFile(fx.hostPath("/shared/d/a.txt"), "a")
	fx.writeFile(fx.hostPath("/shared/d/sub/b.bin"), binary)
	fx.writeFile(fx.hostPath("/shared/d/sub/\xff\xfe"), "strange name")
	fx.mkdir(fx.hostPath("/shared/d/empty"))
	fx.writeFile(fx.hostPath("/shared/d/run.sh"), "#!/bin/sh\n")
	if err := os.Chmod(fx.hostPath("/shared/d/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	fx.symlink("a.txt", fx.hostPath("/shared/d/inner"))
	fx.symlink("/etc/passwd", fx.hostPath("/shared/d/outer"))
	fx.wantError(reeve.ToolFailed, "file_delete", m{"path": "/shared/d"})
	fx.wantError(reeve.Denied, "file_delete", m{"path": "/shared", "recursive": true})
	fx.wantError(reeve.ToolFailed, "file_delete", m{"path": "/shared/none"})
	undo := fx.runWithUndo("file_delete", m{"path": "/shared/d", "recursive": true})
	fx.checkAbsent("/shared/d")
	fx.checkNoTempFiles()
	inv := fx.invocation(undo.Args)
	out, err := fx.run(undo.Tool, inv)
	if err != nil {
		t.Fatal(err)
	}
	r := decode[restoreResult](fx, out)
	// Links are not restored.
	if len(r.Skipped) != 2 || r.Skipped[0] != "/shared/d/inner" || r.Skipped[1] != "/shared/d/outer" {
		t.Errorf("skipped %v", r.Skipped)
	}
	if fx.readFile("/shared/d/a.txt") != "a" || fx.readFile("/shared/d/sub/b.bin") != binary ||
		fx.readFile("/shared/d/sub/\xff\xfe") != "strange name" {
		t.Error("the content is not restored")
	}
	if info, err := os.Stat(fx.hostPath("/shared/d/run.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Error("not executable any more", err)
	}
	if info, err := os.Stat(fx.hostPath("/shared/d/empty")); err != nil || !info.IsDir() {
		t.Error("the empty folder is gone", err)
	}
	fx.checkAbsent("/shared/d/inner")
	fx.checkAbsent("/shared/d/outer")
	_, again, _ := inv.Close()
	fx.runUndo(again)
	fx.checkAbsent("/shared/d")
	for _, mode := range []os.FileMode{0o600, 0o755} {
		fx.writeFile(fx.hostPath("/shared/f"), "f")
		if err := os.Chmod(fx.hostPath("/shared/f"), mode); err != nil {
			t.Fatal(err)
		}
		fx.runUndo(fx.runWithUndo("file_delete", m{"path": "/shared/f"}))
		if info, err := os.Stat(fx.hostPath("/shared/f")); err != nil || info.Mode()&0o100 != mode&0o100 ||
			fx.readFile("/shared/f") != "f" {
			t.Error("the file is not restored", info, err)
		}
		fx.mustRun("file_delete", m{"path": "/shared/f"})
	}
	fx.symlink("x/y", fx.hostPath("/shared/ln"))
	fx.runUndo(fx.runWithUndo("file_delete", m{"path": "/shared/ln"}))
	if s, err := os.Readlink(fx.hostPath("/shared/ln")); err != nil || s != "x/y" {
		t.Error(s, err)
	}
	fx.checkNoTempFiles()
}

func TestO03_RestoreRefusesInvalidContent(t *testing.T) {
	fx := newFixture(t)
	fx.wantError(reeve.ToolFailed, "file_restore", m{"path": "/shared/a", "hash": reeve.Hash([]byte("never"))})
	for _, bad := range []string{"absent", "sha256:12", "dir:../../x", strings.Repeat("g", 64), "link:"} {
		fx.wantError(reeve.Validation, "file_restore", m{"path": "/shared/a", "hash": bad})
	}
	// An agent can write bytes and then name them as a folder or a link.
	for _, evil := range []string{`[{"path":"\"../../x\"","kind":"dir"}]`, `[{"path":"\"/etc/x\"","kind":"dir"}]`,
		`[{"path":"\"a/.reeve-1\"","kind":"dir"}]`,
		`[{"path":"x","kind":"dir"}]`, `[{"path":"\"x\"","kind":"fifo"}]`, `{}`, "x"} {
		hash, _ := fx.blobs.Put(context.Background(), ws, []byte(evil))
		fx.wantError(reeve.Validation, "file_restore", m{"path": "/shared/a", "hash": "dir:" + hash})
	}
	for _, target := range []string{"/etc/passwd", "../vault/key.txt", "a/../../vault"} {
		hash, _ := fx.blobs.Put(context.Background(), ws, []byte(target))
		fx.wantError(reeve.Denied, "file_restore", m{"path": "/shared/a", "hash": "link:" + hash})
	}
	through, _ := fx.blobs.Put(context.Background(), ws,
		[]byte(`[{"path":"\"l\"","kind":"link","target":"\"..\""},{"path":"\"l/escaped\"","kind":"dir"}]`))
	if _, err := fx.run("file_restore", fx.invocation(m{"path": "/shared/a", "hash": "dir:" + through})); err == nil {
		t.Error("restored through a link")
	}
	fx.checkAbsent("/shared/escaped")
	fx.blobs.data[ws+"/"+reeve.Hash([]byte("good"))] = []byte("rotten")
	fx.wantError(reeve.Internal, "file_restore", m{"path": "/shared/a", "hash": reeve.Hash([]byte("good"))})
	fx.checkAbsent("/shared/a")
	fx.checkOutside()
	fx.checkNoTempFiles()
}

func TestO03_Limits(t *testing.T) {
	fx := newFixture(t)
	fx.newPack(Config{MaxFile: 10, MaxUndo: 20, MaxEntries: 3})
	fx.wantError(reeve.TooLarge, "file_write", m{"path": "/shared/a", "content": "12345678901"})
	fx.mustRun("file_write", m{"path": "/shared/a", "content": "1234567890"})
	fx.wantError(reeve.TooLarge, "file_edit", m{"path": "/shared/a", "old": "0", "new": "00"})
	fx.writeFile(fx.hostPath("/shared/big"), strings.Repeat("x", 21))
	fx.wantError(reeve.TooLarge, "file_delete", m{"path": "/shared/big"})
	fx.wantError(reeve.TooLarge, "file_write", m{"path": "/shared/big", "content": "x", "overwrite": true})
	fx.writeFile(fx.hostPath("/vault/big"), strings.Repeat("x", 11))
	fx.wantError(reeve.TooLarge, "vault_copyto", m{"from": "/vault/big", "to": "/shared/x"})
	for _, n := range []string{"1", "2", "3", "4"} {
		fx.mkdir(fx.hostPath("/shared/many/" + n))
	}
	fx.wantError(reeve.TooLarge, "file_delete", m{"path": "/shared/many", "recursive": true})
	fx.writeFile(fx.hostPath("/shared/fat/a"), strings.Repeat("x", 15))
	fx.writeFile(fx.hostPath("/shared/fat/b"), strings.Repeat("x", 15))
	fx.wantError(reeve.TooLarge, "file_delete", m{"path": "/shared/fat", "recursive": true})
	fx.checkNoTempFiles()
	for _, c := range []Config{{}, {Dir: t.TempDir()}, {Dir: t.TempDir(), Blobs: fx.blobs, MaxFile: -1},
		{Dir: filepath.Join(fx.dir, "reeve.db"), Blobs: fx.blobs}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

func TestO03_CanceledCallsChangeNothing(t *testing.T) {
	fx := newFixture(t)
	fx.writeFile(fx.hostPath("/shared/a.txt"), "secret")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	before, _ := fx.blobs.Put(ctx, ws, []byte("old"))
	for tool, args := range everyTool("/shared/a.txt") {
		if tool == "file_list" {
			continue
		}
		args["hash"] = before
		if _, err := fx.tools[tool].Handler(ctx, fx.invocation(args)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", tool, err)
		}
	}
	if !bytes.Equal([]byte(fx.readFile("/shared/a.txt")), []byte("secret")) {
		t.Error("changed after it was canceled")
	}
	fx.checkNoTempFiles()
}

// TestO03_OneCreatorWins creates the same file from two packs, as two processes would. One succeeds, the other fails.
func TestO03_OneCreatorWins(t *testing.T) {
	fx := newFixture(t)
	other, err := New(Config{Dir: fx.pack.path, Blobs: fx.blobs})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		v := fmt.Sprintf("/shared/%d", i)
		var group sync.WaitGroup
		errs := make([]error, 2)
		for n, p := range []*Pack{fx.pack, other} {
			group.Go(func() {
				_, errs[n] = (&editor{fileWriter: p.writer, maxFile: p.maxFile}).writeTool().
					Handler(context.Background(), fx.invocation(m{"path": v, "content": fmt.Sprint(n)}))
			})
		}
		group.Wait()
		won := "0"
		if errs[0] != nil {
			won = "1"
		}
		if (errs[0] == nil) == (errs[1] == nil) || fx.readFile(v) != won {
			t.Fatalf("%v, and the file has %q", errs, fx.readFile(v))
		}
	}
	fx.checkNoTempFiles()
}

func TestO03_RestoreOverExecutable(t *testing.T) {
	fx := newFixture(t)
	hash, _ := fx.blobs.Put(context.Background(), ws, []byte("plain"))
	fx.writeFile(fx.hostPath("/shared/p"), "program")
	if err := os.Chmod(fx.hostPath("/shared/p"), 0o755); err != nil {
		t.Fatal(err)
	}
	undo := fx.runWithUndo("file_restore", m{"path": "/shared/p", "hash": hash})
	if info, err := os.Stat(fx.hostPath("/shared/p")); err != nil || info.Mode()&0o111 != 0 {
		t.Error("still executable", err)
	}
	fx.runUndo(undo)
	if info, err := os.Stat(fx.hostPath("/shared/p")); err != nil || info.Mode()&0o100 == 0 ||
		fx.readFile("/shared/p") != "program" {
		t.Error("not executable again", err)
	}
}

// TestO03_CanceledBeforeRename cancels a call after it stored the old bytes and before it changes the file.
func TestO03_CanceledBeforeRename(t *testing.T) {
	fx := newFixture(t)
	fx.writeFile(fx.hostPath("/shared/a.txt"), "secret")
	hash, _ := fx.blobs.Put(context.Background(), ws, []byte("old"))
	for tool, args := range everyTool("/shared/a.txt") {
		if fx.tools[tool].Effect == reeve.Read {
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		fx.blobs.hook = cancel
		if args["hash"] != nil {
			args["hash"] = hash
		}
		if _, err := fx.tools[tool].Handler(ctx, fx.invocation(args)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", tool, err)
		}
		cancel()
	}
	if fx.readFile("/shared/a.txt") != "secret" {
		t.Error("changed after it was canceled")
	}
	fx.checkNoTempFiles()
}
