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

func TestO03_EditWantsExactlyOne(t *testing.T) {
	w := newWorld(t)
	w.put(w.host("/shared/a.txt"), "one\ntwo two\naaa\nend\n")
	for old, want := range map[string]string{"three": "does not occur", "two": "occurs 2 times",
		"aa": "occurs 2 times"} {
		if e := w.refuse(reeve.ToolFailed, "file_edit", m{"path": "/shared/a.txt", "old": old,
			"new": "x"}); !strings.Contains(e.Message, want) {
			t.Errorf("%q: %s", old, e.Message)
		}
	}
	// a file of z could have millions, each as long as the text that is looked for
	w.put(w.host("/shared/z.txt"), strings.Repeat("z", 1000))
	if e := w.refuse(reeve.ToolFailed, "file_edit", m{"path": "/shared/z.txt", "old": "zzz",
		"new": "x"}); !strings.Contains(e.Message, "occurs 100 times or more") {
		t.Error(e.Message)
	}
	w.refuse(reeve.Validation, "file_edit", m{"path": "/shared/a.txt", "old": "", "new": "x"})
	w.refuse(reeve.Validation, "file_edit", m{"path": "/shared/a.txt", "old": "one", "new": "one"})
	if e := w.refuse(reeve.ToolFailed, "file_edit", m{"path": "/shared/no.txt", "old": "a",
		"new": "b"}); e.Message != "file not found: /shared/no.txt" {
		t.Error(e.Message)
	}
	w.put(w.host("/shared/bin"), "a\x00b")
	w.refuse(reeve.ToolFailed, "file_edit", m{"path": "/shared/bin", "old": "a", "new": "b"})
	if w.get("/shared/a.txt") != "one\ntwo two\naaa\nend\n" || w.keep.puts != 0 {
		t.Fatal("a refused edit changed something")
	}
	undo := w.do("file_edit", m{"path": "/shared/a.txt", "old": "end", "new": "END"})
	if got := w.get("/shared/a.txt"); got != "one\ntwo two\naaa\nEND\n" {
		t.Fatalf("%q", got)
	}
	redo := w.undo(undo)
	if got := w.get("/shared/a.txt"); got != "one\ntwo two\naaa\nend\n" {
		t.Fatalf("%q", got)
	}
	w.undo(redo)
	if got := w.get("/shared/a.txt"); got != "one\ntwo two\naaa\nEND\n" {
		t.Fatalf("%q", got)
	}
	out := says[editResult](w, w.ok("file_edit", m{"path": "/shared/a.txt", "old": "aaa", "new": "b"}))
	if out.Line != 3 || out.Size != len("one\ntwo two\nb\nEND\n") {
		t.Errorf("%+v", out)
	}
	w.clean()
}

func TestO03_WriteKeepsWhatItReplaces(t *testing.T) {
	w := newWorld(t)
	created := w.do("file_write", m{"path": "/shared/deep/er/a.txt", "content": "v1"})
	if e := w.refuse(reeve.AlreadyExists, "file_write",
		m{"path": "/shared/deep/er/a.txt", "content": "v2"}); !strings.Contains(e.Hint, "overwrite") {
		t.Error(e.Hint)
	}
	if w.keep.puts != 0 || w.get("/shared/deep/er/a.txt") != "v1" {
		t.Fatal("a refused write changed something")
	}
	replaced := w.do("file_write", m{"path": "/shared/deep/er/a.txt", "content": "v2", "overwrite": true})
	if b, err := w.keep.Get(context.Background(), ws, reeve.Hash([]byte("v1"))); err != nil || string(b) != "v1" {
		t.Fatal("the old bytes were not kept", err)
	}
	// The first change cannot be taken back while the second one stands on it.
	w.refuse(reeve.Stale, created.Tool, created.Args)
	w.undo(replaced)
	if w.get("/shared/deep/er/a.txt") != "v1" {
		t.Fatal(w.get("/shared/deep/er/a.txt"))
	}
	w.undo(created)
	w.absent("/shared/deep/er/a.txt")
	// The same bytes again are no change: nothing to undo, nothing to tell.
	w.ok("file_write", m{"path": "/tmp/s", "content": "same"})
	inv := w.invocation(m{"path": "/tmp/s", "content": "same", "overwrite": true})
	if _, err := w.run("file_write", inv); err != nil {
		t.Fatal(err)
	}
	if changed, undo, _ := inv.Close(); changed != nil || undo != nil {
		t.Errorf("no change, but %v %v", changed, undo)
	}
	w.refuse(reeve.ToolFailed, "file_write", m{"path": "/shared/deep", "content": "x", "overwrite": true})
	w.refuse(reeve.ToolFailed, "file_write", m{"path": "/tmp/s/below", "content": "x"})
	w.clean()
}

func TestO03_NothingChangesUnlessKept(t *testing.T) {
	w := newWorld(t)
	w.put(w.host("/shared/a.txt"), "old")
	w.put(w.host("/shared/d/b.txt"), "old")
	w.keep.fail = errors.New("the store is away at " + w.top)
	for tool, args := range map[string]m{
		"file_write":   {"path": "/shared/a.txt", "content": "new", "overwrite": true},
		"file_edit":    {"path": "/shared/a.txt", "old": "old", "new": "new"},
		"vault_copyto": {"from": "/vault/key.txt", "to": "/shared/a.txt", "overwrite": true},
		"file_delete":  {"path": "/shared/d", "recursive": true},
	} {
		_, err := w.tools[tool].Handler(context.Background(), w.invocation(args))
		if reeve.CodeOf(err) != reeve.Unavailable || strings.Contains(reeve.AsError(err).Message, w.top) {
			t.Errorf("%s: %v", tool, err)
		}
	}
	if w.get("/shared/a.txt") != "old" || w.get("/shared/d/b.txt") != "old" {
		t.Error("changed without having kept")
	}
	w.clean()
}

func TestO03_OldBytesAreKeptFirst(t *testing.T) {
	w := newWorld(t)
	w.put(w.host("/shared/a.txt"), "old")
	w.keep.hook = func() {
		if w.get("/shared/a.txt") != "old" {
			t.Error("changed before it was kept")
		}
	}
	w.ok("file_write", m{"path": "/shared/a.txt", "content": "old2", "overwrite": true})
	w.keep.hook = func() {
		if w.get("/shared/a.txt") != "old2" {
			t.Error("changed before it was kept")
		}
	}
	w.ok("file_delete", m{"path": "/shared/a.txt"})
	if w.keep.puts != 2 {
		t.Errorf("%d kept", w.keep.puts)
	}
}

// TestO03_WritesAreAtomic reads a file while it is being rewritten: it is always one version, whole.
func TestO03_WritesAreAtomic(t *testing.T) {
	w := newWorld(t)
	one, two := strings.Repeat("1", 200_000), strings.Repeat("2", 300_000)
	w.put(w.host("/shared/a.txt"), one)
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			b, err := os.ReadFile(w.host("/shared/a.txt"))
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
		w.ok("file_write", m{"path": "/shared/a.txt", "content": content, "overwrite": true})
	}
	close(stop)
	group.Wait()
	w.clean()
}

// TestO03_ConcurrentEditsAllArrive edits one file from many calls: none may get lost.
func TestO03_ConcurrentEditsAllArrive(t *testing.T) {
	w := newWorld(t)
	var marks []string
	for i := range 20 {
		marks = append(marks, string(rune('a'+i)))
	}
	w.put(w.host("/shared/a.txt"), strings.Join(marks, "\n"))
	var group sync.WaitGroup
	for _, mark := range marks {
		group.Go(func() {
			if _, err := w.run("file_edit",
				w.invocation(m{"path": "/shared/a.txt", "old": mark, "new": strings.ToUpper(mark)})); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := w.get("/shared/a.txt"); got != strings.ToUpper(strings.Join(marks, "\n")) {
		t.Errorf("%q", got)
	}
	w.clean()
}

// What file_read could not give back is not written: the path of the argument says where the NUL is, and nothing is
// changed.
func TestO03_NULIsRefused(t *testing.T) {
	w := newWorld(t)
	w.put(w.host("/shared/a.txt"), "one two")
	for path, c := range map[string]struct {
		tool string
		args m
	}{
		"/content": {"file_write", m{"path": "/shared/b.txt", "content": "one\x00two"}},
		"/new":     {"file_edit", m{"path": "/shared/a.txt", "old": "one", "new": "\x00"}},
		"/old":     {"file_edit", m{"path": "/shared/a.txt", "old": "one\x00", "new": "two"}},
	} {
		e := w.refuse(reeve.Validation, c.tool, c.args)
		if len(e.Fields) != 1 || e.Fields[0].Path != path || !strings.Contains(e.Message, "NUL character, at byte") ||
			e.Hint == "" {
			t.Errorf("%s: %+v", path, e)
		}
	}
	if r := says[readResult](w, w.ok("file_read", m{"path": "/shared/a.txt"})); r.Text != "one two" {
		t.Errorf("it became %q", r.Text)
	}
	w.refuse(reeve.ToolFailed, "file_read", m{"path": "/shared/b.txt"})
}
