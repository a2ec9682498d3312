package files

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"reeve"
)

func TestO03_EditRequiresOneOccurrence(t *testing.T) {
	fx := newFixture(t)
	fx.writeFile(fx.hostPath("/shared/a.txt"), "one\ntwo two\naaa\nend\n")
	for old, want := range map[string]string{"three": "does not occur", "two": "occurs 2 times",
		"aa": "occurs 2 times"} {
		if e := fx.wantError(reeve.ToolFailed, "file_edit", m{"path": "/shared/a.txt", "old": old, "new": "x"}); !strings.Contains(e.Message, want) {
			t.Errorf("%q: %s", old, e.Message)
		}
	}
	// The count stops at 100.
	fx.writeFile(fx.hostPath("/shared/z.txt"), strings.Repeat("z", 1000))
	if e := fx.wantError(reeve.ToolFailed, "file_edit", m{"path": "/shared/z.txt", "old": "zzz", "new": "x"}); !strings.Contains(e.Message, "occurs 100 times or more") {
		t.Error(e.Message)
	}
	fx.wantError(reeve.Validation, "file_edit", m{"path": "/shared/a.txt", "old": "", "new": "x"})
	fx.wantError(reeve.Validation, "file_edit", m{"path": "/shared/a.txt", "old": "one", "new": "one"})
	if e := fx.wantError(reeve.ToolFailed, "file_edit", m{"path": "/shared/no.txt", "old": "a", "new": "b"}); e.Message != "file not found: /shared/no.txt" {
		t.Error(e.Message)
	}
	fx.writeFile(fx.hostPath("/shared/bin"), "a\x00b")
	fx.wantError(reeve.ToolFailed, "file_edit", m{"path": "/shared/bin", "old": "a", "new": "b"})
	if fx.readFile("/shared/a.txt") != "one\ntwo two\naaa\nend\n" || fx.blobs.puts != 0 {
		t.Fatal("a refused edit changed something")
	}
	undo := fx.runWithUndo("file_edit", m{"path": "/shared/a.txt", "old": "end", "new": "END"})
	if got := fx.readFile("/shared/a.txt"); got != "one\ntwo two\naaa\nEND\n" {
		t.Fatalf("%q", got)
	}
	redo := fx.runUndo(undo)
	if got := fx.readFile("/shared/a.txt"); got != "one\ntwo two\naaa\nend\n" {
		t.Fatalf("%q", got)
	}
	fx.runUndo(redo)
	if got := fx.readFile("/shared/a.txt"); got != "one\ntwo two\naaa\nEND\n" {
		t.Fatalf("%q", got)
	}
	out := decode[editResult](fx, fx.mustRun("file_edit", m{"path": "/shared/a.txt", "old": "aaa", "new": "b"}))
	if out.Line != 3 || out.Size != len("one\ntwo two\nb\nEND\n") {
		t.Errorf("%+v", out)
	}
	fx.checkNoTempFiles()
}

func TestO03_WriteStoresOldContent(t *testing.T) {
	fx := newFixture(t)
	created := fx.runWithUndo("file_write", m{"path": "/shared/deep/er/a.txt", "content": "v1"})
	if e := fx.wantError(reeve.AlreadyExists, "file_write", m{"path": "/shared/deep/er/a.txt", "content": "v2"}); !strings.Contains(e.Hint, "overwrite") {
		t.Error(e.Hint)
	}
	if fx.blobs.puts != 0 || fx.readFile("/shared/deep/er/a.txt") != "v1" {
		t.Fatal("a refused write changed something")
	}
	replaced := fx.runWithUndo("file_write", m{"path": "/shared/deep/er/a.txt", "content": "v2", "overwrite": true})
	if b, err := fx.blobs.Get(context.Background(), ws, reeve.Hash([]byte("v1"))); err != nil || string(b) != "v1" {
		t.Fatal("the old bytes were not stored", err)
	}
	// The first change cannot be undone before the second one.
	fx.wantError(reeve.Stale, created.Tool, created.Args)
	fx.runUndo(replaced)
	if fx.readFile("/shared/deep/er/a.txt") != "v1" {
		t.Fatal(fx.readFile("/shared/deep/er/a.txt"))
	}
	fx.runUndo(created)
	fx.checkAbsent("/shared/deep/er/a.txt")
	// A write of the same bytes reports no change and has no undo.
	fx.mustRun("file_write", m{"path": "/tmp/s", "content": "same"})
	inv := fx.invocation(m{"path": "/tmp/s", "content": "same", "overwrite": true})
	if _, err := fx.run("file_write", inv); err != nil {
		t.Fatal(err)
	}
	if changed, undo, _ := inv.Close(); changed != nil || undo != nil {
		t.Errorf("no change, but %v %v", changed, undo)
	}
	fx.wantError(reeve.ToolFailed, "file_write", m{"path": "/shared/deep", "content": "x", "overwrite": true})
	fx.wantError(reeve.ToolFailed, "file_write", m{"path": "/tmp/s/below", "content": "x"})
	fx.checkNoTempFiles()
}

func TestO03_NoChangeIfStoringFails(t *testing.T) {
	fx := newFixture(t)
	fx.writeFile(fx.hostPath("/shared/a.txt"), "old")
	fx.writeFile(fx.hostPath("/shared/d/b.txt"), "old")
	fx.blobs.fail = errors.New("no store at " + fx.dir)
	for tool, args := range map[string]m{
		"file_write":   {"path": "/shared/a.txt", "content": "new", "overwrite": true},
		"file_edit":    {"path": "/shared/a.txt", "old": "old", "new": "new"},
		"vault_copyto": {"from": "/vault/key.txt", "to": "/shared/a.txt", "overwrite": true},
		"file_delete":  {"path": "/shared/d", "recursive": true},
	} {
		_, err := fx.tools[tool].Handler(context.Background(), fx.invocation(args))
		if reeve.CodeOf(err) != reeve.Unavailable || strings.Contains(reeve.AsError(err).Message, fx.dir) {
			t.Errorf("%s: %v", tool, err)
		}
	}
	if fx.readFile("/shared/a.txt") != "old" || fx.readFile("/shared/d/b.txt") != "old" {
		t.Error("changed without storing the old bytes")
	}
	fx.checkNoTempFiles()
}

func TestO03_OldBytesAreStoredFirst(t *testing.T) {
	fx := newFixture(t)
	fx.writeFile(fx.hostPath("/shared/a.txt"), "old")
	fx.blobs.hook = func() {
		if fx.readFile("/shared/a.txt") != "old" {
			t.Error("changed before the old bytes were stored")
		}
	}
	fx.mustRun("file_write", m{"path": "/shared/a.txt", "content": "old2", "overwrite": true})
	fx.blobs.hook = func() {
		if fx.readFile("/shared/a.txt") != "old2" {
			t.Error("changed before the old bytes were stored")
		}
	}
	fx.mustRun("file_delete", m{"path": "/shared/a.txt"})
	if fx.blobs.puts != 2 {
		t.Errorf("%d blobs stored; want 2", fx.blobs.puts)
	}
}

// TestO03_WritesAreAtomic reads a file during writes. Each read returns one complete version.
func TestO03_WritesAreAtomic(t *testing.T) {
	fx := newFixture(t)
	one, two := strings.Repeat("1", 200_000), strings.Repeat("2", 300_000)
	fx.writeFile(fx.hostPath("/shared/a.txt"), one)
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			b, err := os.ReadFile(fx.hostPath("/shared/a.txt"))
			if err != nil || (string(b) != one && string(b) != two) {
				t.Errorf("%d bytes, %v", len(b), err)
				return
			}
		}
	})
	for i := range 60 {
		content := one
		if i%2 == 0 {
			content = two
		}
		fx.mustRun("file_write", m{"path": "/shared/a.txt", "content": content, "overwrite": true})
	}
	close(stop)
	group.Wait()
	fx.checkNoTempFiles()
}

// TestO03_NoConcurrentEditIsLost edits one file from many calls.
func TestO03_NoConcurrentEditIsLost(t *testing.T) {
	fx := newFixture(t)
	var marks []string
	for i := range 20 {
		marks = append(marks, string(rune('a'+i)))
	}
	fx.writeFile(fx.hostPath("/shared/a.txt"), strings.Join(marks, "\n"))
	var group sync.WaitGroup
	for _, mark := range marks {
		group.Go(func() {
			if _, err := fx.run("file_edit",
				fx.invocation(m{"path": "/shared/a.txt", "old": mark, "new": strings.ToUpper(mark)})); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := fx.readFile("/shared/a.txt"); got != strings.ToUpper(strings.Join(marks, "\n")) {
		t.Errorf("%q", got)
	}
	fx.checkNoTempFiles()
}

// TestO03_NULIsRefused checks that text with NUL, which file_read cannot return, is not written. The error names the
// argument.
func TestO03_NULIsRefused(t *testing.T) {
	fx := newFixture(t)
	fx.writeFile(fx.hostPath("/shared/a.txt"), "one two")
	for path, c := range map[string]struct {
		tool string
		args m
	}{
		"/content": {"file_write", m{"path": "/shared/b.txt", "content": "one\x00two"}},
		"/new":     {"file_edit", m{"path": "/shared/a.txt", "old": "one", "new": "\x00"}},
		"/old":     {"file_edit", m{"path": "/shared/a.txt", "old": "one\x00", "new": "two"}},
	} {
		e := fx.wantError(reeve.Validation, c.tool, c.args)
		if len(e.Fields) != 1 || e.Fields[0].Path != path || !strings.Contains(e.Message, "NUL character at byte") ||
			e.Hint == "" {
			t.Errorf("%s: %+v", path, e)
		}
	}
	if r := decode[readResult](fx, fx.mustRun("file_read", m{"path": "/shared/a.txt"})); r.Text != "one two" {
		t.Errorf("the file changed to %q", r.Text)
	}
	fx.wantError(reeve.ToolFailed, "file_read", m{"path": "/shared/b.txt"})
}
