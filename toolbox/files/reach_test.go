package files

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"reeve"
)

// everyTool calls every tool on a path.
func everyTool(v string) map[string]m {
	return map[string]m{
		"file_read": {"path": v}, "file_list": {"path": v}, "file_search": {"path": v, "query": "secret"},
		"file_write": {"path": v, "content": "x", "overwrite": true}, "file_edit": {"path": v, "old": "secret",
			"new": "x"},
		"file_delete": {"path": v, "recursive": true}, "file_restore": {"path": v, "hash": reeve.Hash([]byte("old"))},
		"vault_copyto": {"from": "/vault/key.txt", "to": v, "overwrite": true},
	}
}

// outsideIntact sees that nothing beside the workspace was touched.
func (w *world) outsideIntact() {
	w.Helper()
	for _, name := range []string{"reeve.db", "outside/secret.txt"} {
		if b, err := os.ReadFile(filepath.Join(w.top, name)); err != nil || string(b) != secret {
			w.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if b, err := os.ReadFile(w.host("/vault/key.txt")); err != nil || string(b) != treasure {
		w.Errorf("vault: %q, %v", b, err)
	}
	entries, err := os.ReadDir(filepath.Join(w.top, "outside"))
	if err != nil || len(entries) != 1 {
		w.Errorf("outside: %v, %v", entries, err)
	}
}

func TestO01_PathsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	w.keep.Put(context.Background(), ws, []byte("old"))
	w.put(w.host("/shared/a.txt"), "a")
	cases := map[string]reeve.Code{
		"/shared/../vault/key.txt":             reeve.Denied,
		"/shared/a/../../vault/key.txt":        reeve.Denied,
		"/../../outside/secret.txt":            reeve.Denied,
		"/shared/..":                           reeve.Denied,
		"/etc/passwd":                          reeve.Denied,
		"/proc/self/environ":                   reeve.Denied,
		"/SHARED/a.txt":                        reeve.Denied,
		"/shared/.reeve-1":                     reeve.Denied,
		"/shared/.REEVE-1/x":                   reeve.Denied,
		"/vault":                               reeve.Denied,
		"/vault/key.txt":                       reeve.Denied,
		"//vault//key.txt":                     reeve.Denied,
		"":                                     reeve.Validation,
		"shared/a.txt":                         reeve.Validation,
		"../reeve.db":                          reeve.Validation,
		`C:\windows`:                           reeve.Validation,
		"/shared/a\x00.txt":                    reeve.Validation,
		"/shared/a\n.txt":                      reeve.Validation,
		"/shared/a\u0085b":                     reeve.Validation,
		"/shared/a\u202etxt.exe":               reeve.Validation,
		"/shared/" + strings.Repeat("n", 256):  reeve.Validation,
		"/shared/" + strings.Repeat("n/", 101): reeve.Validation,
		"/shared/" + strings.Repeat("é", 3000): reeve.Validation,
	}
	for v, code := range cases {
		for tool, args := range everyTool(v) {
			if tool == "file_search" && v == "" {
				continue // means both roots
			}
			w.refuse(code, tool, args)
			if err := w.tools[tool].Check(context.Background(), w.invocation(args)); reeve.CodeOf(err) != code {
				t.Errorf("the check of %s lets %q pass: %v", tool, v, err)
			}
			// The handler does not lean on the check.
			if _, err := w.tools[tool].Handler(context.Background(), w.invocation(args)); reeve.CodeOf(err) != code {
				t.Errorf("the handler of %s lets %q pass: %v", tool, v, err)
			}
		}
	}
	if _, err := parsePath("path", "/shared/a\xff"); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("invalid UTF-8: %v", err) // JSON cannot carry it, Go can
	}
	if e := w.refuse(reeve.Denied, "file_read", m{"path": "/etc/passwd"}); !strings.Contains(e.Hint, "/shared") {
		t.Errorf("the hint does not name the roots: %q", e.Hint)
	}
	w.outsideIntact()
}

func TestO01_SymlinkEscapes(t *testing.T) {
	w := newWorld(t)
	w.keep.Put(context.Background(), ws, []byte("old"))
	outside := filepath.Join(w.top, "outside")
	w.link(filepath.Join(outside, "secret.txt"), w.host("/shared/abs"))
	w.link("../../../outside/secret.txt", w.host("/shared/rel"))
	w.link("../vault/key.txt", w.host("/shared/vault"))
	w.link("../../../reeve.db", w.host("/tmp/db"))
	w.link(outside, w.host("/shared/dir"))
	w.link("nowhere", w.host("/shared/dangling"))
	w.link(filepath.Join(outside, "new.txt"), w.host("/shared/dangling-out"))
	w.link("cycle", w.host("/shared/cycle"))
	w.link(".", w.host("/shared/self"))
	w.put(w.host("/shared/real/deep.txt"), "inside")
	w.link("real", w.host("/shared/inner"))
	paths := []string{"/shared/abs", "/shared/rel", "/shared/vault", "/tmp/db", "/shared/dir", "/shared/dir/secret.txt",
		"/shared/dir/new.txt",
		"/shared/dangling", "/shared/dangling-out", "/shared/cycle", "/shared/cycle/x", "/shared/self/self/abs",
		"/shared/inner/deep.txt"}
	for _, v := range paths {
		for tool, args := range everyTool(v) {
			if tool == "file_delete" && !strings.Contains(v[1:], "/dir/") && strings.Count(v, "/") == 2 {
				continue // a link may be deleted: see below
			}
			w.refuse(reeve.Denied, tool, args)
		}
	}
	if out := w.ok("file_search", m{"query": secret}); len(says[searchResult](w, out).Matches) != 0 {
		t.Errorf("found outside: %s", out)
	}
	if out := w.ok("file_search", m{"query": "inside"}); len(says[searchResult](w, out).Matches) != 1 {
		t.Errorf("a link was followed: %s", out)
	}
	for _, e := range says[listResult](w, w.ok("file_list", m{"path": "/shared"})).Entries {
		if e.Name != "real" && (e.Kind != "link" || e.Size != 0) {
			t.Errorf("%+v", e)
		}
	}
	w.outsideIntact()
	// Deleting a link, or a folder that holds links, takes the links and not what they point to.
	w.ok("file_delete", m{"path": "/shared/dir"})
	w.absent("/shared/dir")
	w.link(outside, w.host("/shared/real/out"))
	w.ok("file_delete", m{"path": "/shared/real", "recursive": true})
	w.absent("/shared/real")
	w.outsideIntact()
	w.clean()
}

func TestO01_RootsThatAreLinks(t *testing.T) {
	w := newWorld(t)
	w.put(filepath.Join(w.top, "workspaces", "ws_other", "shared", "x.txt"), secret)
	for name, target := range map[string]string{"other": "../ws_other/shared", "vault": "vault",
		"out": filepath.Join(w.top, "outside")} {
		if err := os.RemoveAll(w.host("/shared")); err != nil {
			t.Fatal(name, err)
		}
		w.link(target, w.host("/shared"))
		for tool, args := range everyTool("/shared/x.txt") {
			if tool == "file_restore" {
				w.keep.Put(context.Background(), ws, []byte("old"))
			}
			w.refuse(reeve.Denied, tool, args)
		}
	}
	w.outsideIntact()
}

func TestO01_ErrorsNameNoHostPath(t *testing.T) {
	v := vpath{root: sharedRoot, names: []string{"a"}}
	for _, cause := range []error{syscall.ENOENT, syscall.ENOSPC, syscall.EIO, syscall.EACCES, syscall.ENAMETOOLONG,
		syscall.ENOTDIR, syscall.EXDEV} {
		for _, err := range []error{&os.PathError{Op: "open", Path: "/srv/reeve/a", Err: cause},
			&os.LinkError{Op: "rename", Old: "/srv/reeve/a", New: "/srv/reeve/b", Err: cause}} {
			got := fault(err, v)
			if strings.Contains(got.Error(), "srv") || !strings.Contains(reeve.AsError(got).Message, "/shared/a") &&
				!errors.Is(got, cause) {
				t.Errorf("%v", got)
			}
		}
	}
}

func TestO01_WorkspaceIds(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"", ".", "..", "../outside", "a/b", `a\b`, "a\x00", ".hidden", "a\nb",
		strings.Repeat("w", 256), "\xff"} {
		for tool, args := range everyTool("/shared/a.txt") {
			inv := w.invocation(args)
			inv.Workspace = id
			if _, err := w.tools[tool].Handler(context.Background(), inv); err == nil ||
				(reeve.CodeOf(err) != reeve.Denied && tool != "file_restore") {
				t.Errorf("%s in workspace %q: %v", tool, id, err)
			}
		}
	}
	// A file of Reeve's own beside the workspaces is no workspace.
	w.put(filepath.Join(w.top, "workspaces", "reeve.db"), secret)
	inv := w.invocation(m{"path": "/shared"})
	inv.Workspace = "reeve.db"
	if _, err := w.run("file_list", inv); err == nil {
		t.Error("a file became a workspace")
	}
	// One workspace does not see another's.
	w.ok("file_write", m{"path": "/shared/mine.txt", "content": "mine"})
	inv = w.invocation(m{"path": "/shared/mine.txt"})
	inv.Workspace = "ws_other"
	if _, err := w.run("file_read", inv); reeve.CodeOf(err) != reeve.ToolFailed {
		t.Errorf("read from another workspace: %v", err)
	}
	info, err := os.Stat(filepath.Join(w.top, "workspaces", "ws_other", "shared"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("made on first use: %v, %v", info, err)
	}
	w.outsideIntact()
}

func TestO01_SpecialFilesDoNotBlock(t *testing.T) {
	w := newWorld(t)
	w.keep.Put(context.Background(), ws, []byte("old"))
	if err := syscall.Mkfifo(w.host("/shared/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "r") // a socket's name must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Rename(filepath.Join(dir, "s"), w.host("/shared/socket")); err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"/shared/pipe", "/shared/socket"} {
		for tool, args := range everyTool(v) {
			code := reeve.Denied
			if tool == "file_list" {
				code = reeve.ToolFailed // not a folder
			}
			w.refuse(code, tool, args)
		}
		w.refuse(reeve.ToolFailed, "file_read", m{"path": v + "/below"})
		w.refuse(reeve.ToolFailed, "file_write", m{"path": v + "/below", "content": "x"})
	}
	w.refuse(reeve.Denied, "file_delete", m{"path": "/shared/pipe"})
	w.put(w.host("/shared/plain.txt"), "needle")
	if out := says[searchResult](w, w.ok("file_search", m{"query": "needle"})); len(out.Matches) != 1 {
		t.Errorf("%+v", out)
	}
	w.clean()
}
