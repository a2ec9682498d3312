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

// everyTool returns arguments for every tool that name the path v.
func everyTool(v string) map[string]m {
	return map[string]m{
		"file_read": {"path": v}, "file_list": {"path": v}, "file_search": {"path": v, "query": "secret"},
		"file_write": {"path": v, "content": "x", "overwrite": true}, "file_edit": {"path": v, "old": "secret",
			"new": "x"},
		"file_delete": {"path": v, "recursive": true}, "file_restore": {"path": v, "hash": reeve.Hash([]byte("old"))},
		"vault_copyto": {"from": "/vault/key.txt", "to": v, "overwrite": true},
	}
}

// checkOutside checks that the files outside the workspace and in the vault are unchanged.
func (fx *fixture) checkOutside() {
	fx.Helper()
	for _, name := range []string{"reeve.db", "outside/secret.txt"} {
		if b, err := os.ReadFile(filepath.Join(fx.dir, name)); err != nil || string(b) != secret {
			fx.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if b, err := os.ReadFile(fx.hostPath("/vault/key.txt")); err != nil || string(b) != vaultContent {
		fx.Errorf("vault: %q, %v", b, err)
	}
	entries, err := os.ReadDir(filepath.Join(fx.dir, "outside"))
	if err != nil || len(entries) != 1 {
		fx.Errorf("outside: %v, %v", entries, err)
	}
}

func TestO01_InvalidPathsAreRefused(t *testing.T) {
	fx := newFixture(t)
	fx.blobs.Put(context.Background(), ws, []byte("old"))
	fx.writeFile(fx.hostPath("/shared/a.txt"), "a")
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
			fx.wantError(code, tool, args)
			if err := fx.tools[tool].Check(context.Background(), fx.invocation(args)); reeve.CodeOf(err) != code {
				t.Errorf("the check of %s lets %q pass: %v", tool, v, err)
			}
			// The handler refuses the path without the check too.
			if _, err := fx.tools[tool].Handler(context.Background(), fx.invocation(args)); reeve.CodeOf(err) != code {
				t.Errorf("the handler of %s lets %q pass: %v", tool, v, err)
			}
		}
	}
	if _, err := parsePath("path", "/shared/a\xff"); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("invalid UTF-8: %v", err) // only Go callers can pass it
	}
	if e := fx.wantError(reeve.Denied, "file_read", m{"path": "/etc/passwd"}); !strings.Contains(e.Hint, "/shared") {
		t.Errorf("the hint does not name the roots: %q", e.Hint)
	}
	fx.checkOutside()
}

func TestO01_SymlinkEscapes(t *testing.T) {
	fx := newFixture(t)
	fx.blobs.Put(context.Background(), ws, []byte("old"))
	outside := filepath.Join(fx.dir, "outside")
	fx.symlink(filepath.Join(outside, "secret.txt"), fx.hostPath("/shared/abs"))
	fx.symlink("../../../outside/secret.txt", fx.hostPath("/shared/rel"))
	fx.symlink("../vault/key.txt", fx.hostPath("/shared/vault"))
	fx.symlink("../../../reeve.db", fx.hostPath("/tmp/db"))
	fx.symlink(outside, fx.hostPath("/shared/dir"))
	fx.symlink("nowhere", fx.hostPath("/shared/dangling"))
	fx.symlink(filepath.Join(outside, "new.txt"), fx.hostPath("/shared/dangling-out"))
	fx.symlink("cycle", fx.hostPath("/shared/cycle"))
	fx.symlink(".", fx.hostPath("/shared/self"))
	fx.writeFile(fx.hostPath("/shared/real/deep.txt"), "inside")
	fx.symlink("real", fx.hostPath("/shared/inner"))
	paths := []string{"/shared/abs", "/shared/rel", "/shared/vault", "/tmp/db", "/shared/dir", "/shared/dir/secret.txt",
		"/shared/dir/new.txt",
		"/shared/dangling", "/shared/dangling-out", "/shared/cycle", "/shared/cycle/x", "/shared/self/self/abs",
		"/shared/inner/deep.txt"}
	for _, v := range paths {
		for tool, args := range everyTool(v) {
			if tool == "file_delete" && !strings.Contains(v[1:], "/dir/") && strings.Count(v, "/") == 2 {
				continue // links can be deleted, see below
			}
			fx.wantError(reeve.Denied, tool, args)
		}
	}
	if out := fx.mustRun("file_search", m{"query": secret}); len(decode[searchResult](fx, out).Matches) != 0 {
		t.Errorf("found outside: %s", out)
	}
	if out := fx.mustRun("file_search", m{"query": "inside"}); len(decode[searchResult](fx, out).Matches) != 1 {
		t.Errorf("a link was followed: %s", out)
	}
	for _, e := range decode[listResult](fx, fx.mustRun("file_list", m{"path": "/shared"})).Entries {
		if e.Name != "real" && (e.Kind != "link" || e.Size != 0) {
			t.Errorf("%+v", e)
		}
	}
	fx.checkOutside()
	// Deleting a link, or a folder with links, does not delete the targets.
	fx.mustRun("file_delete", m{"path": "/shared/dir"})
	fx.checkAbsent("/shared/dir")
	fx.symlink(outside, fx.hostPath("/shared/real/out"))
	fx.mustRun("file_delete", m{"path": "/shared/real", "recursive": true})
	fx.checkAbsent("/shared/real")
	fx.checkOutside()
	fx.checkNoTempFiles()
}

func TestO01_RootsThatAreLinks(t *testing.T) {
	fx := newFixture(t)
	fx.writeFile(filepath.Join(fx.dir, "workspaces", "ws_other", "shared", "x.txt"), secret)
	for name, target := range map[string]string{"other": "../ws_other/shared", "vault": "vault",
		"out": filepath.Join(fx.dir, "outside")} {
		if err := os.RemoveAll(fx.hostPath("/shared")); err != nil {
			t.Fatal(name, err)
		}
		fx.symlink(target, fx.hostPath("/shared"))
		for tool, args := range everyTool("/shared/x.txt") {
			if tool == "file_restore" {
				fx.blobs.Put(context.Background(), ws, []byte("old"))
			}
			fx.wantError(reeve.Denied, tool, args)
		}
	}
	fx.checkOutside()
}

func TestO01_ErrorsNameNoHostPath(t *testing.T) {
	v := vpath{root: sharedRoot, names: []string{"a"}}
	for _, cause := range []error{syscall.ENOENT, syscall.ENOSPC, syscall.EIO, syscall.EACCES, syscall.ENAMETOOLONG,
		syscall.ENOTDIR, syscall.EXDEV} {
		for _, err := range []error{&os.PathError{Op: "open", Path: "/srv/reeve/a", Err: cause},
			&os.LinkError{Op: "rename", Old: "/srv/reeve/a", New: "/srv/reeve/b", Err: cause}} {
			got := convertError(err, v)
			if strings.Contains(got.Error(), "srv") || !strings.Contains(reeve.AsError(got).Message, "/shared/a") &&
				!errors.Is(got, cause) {
				t.Errorf("%v", got)
			}
		}
	}
}

func TestO01_WorkspaceIds(t *testing.T) {
	fx := newFixture(t)
	for _, id := range []string{"", ".", "..", "../outside", "a/b", `a\b`, "a\x00", ".hidden", "a\nb",
		strings.Repeat("w", 256), "\xff"} {
		for tool, args := range everyTool("/shared/a.txt") {
			inv := fx.invocation(args)
			inv.Workspace = id
			if _, err := fx.tools[tool].Handler(context.Background(), inv); err == nil ||
				(reeve.CodeOf(err) != reeve.Denied && tool != "file_restore") {
				t.Errorf("%s in workspace %q: %v", tool, id, err)
			}
		}
	}
	// A file in the folder of the workspaces is not a workspace.
	fx.writeFile(filepath.Join(fx.dir, "workspaces", "reeve.db"), secret)
	inv := fx.invocation(m{"path": "/shared"})
	inv.Workspace = "reeve.db"
	if _, err := fx.run("file_list", inv); err == nil {
		t.Error("a file was used as a workspace")
	}
	// A workspace cannot read the files of another.
	fx.mustRun("file_write", m{"path": "/shared/mine.txt", "content": "mine"})
	inv = fx.invocation(m{"path": "/shared/mine.txt"})
	inv.Workspace = "ws_other"
	if _, err := fx.run("file_read", inv); reeve.CodeOf(err) != reeve.ToolFailed {
		t.Errorf("read from another workspace: %v", err)
	}
	info, err := os.Stat(filepath.Join(fx.dir, "workspaces", "ws_other", "shared"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the root was not created on first use: %v, %v", info, err)
	}
	fx.checkOutside()
}

func TestO01_SpecialFilesDoNotBlock(t *testing.T) {
	fx := newFixture(t)
	fx.blobs.Put(context.Background(), ws, []byte("old"))
	if err := syscall.Mkfifo(fx.hostPath("/shared/pipe"), 0o600); err != nil {
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
	if err := os.Rename(filepath.Join(dir, "s"), fx.hostPath("/shared/socket")); err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"/shared/pipe", "/shared/socket"} {
		for tool, args := range everyTool(v) {
			code := reeve.Denied
			if tool == "file_list" {
				code = reeve.ToolFailed // not a folder
			}
			fx.wantError(code, tool, args)
		}
		fx.wantError(reeve.ToolFailed, "file_read", m{"path": v + "/below"})
		fx.wantError(reeve.ToolFailed, "file_write", m{"path": v + "/below", "content": "x"})
	}
	fx.wantError(reeve.Denied, "file_delete", m{"path": "/shared/pipe"})
	fx.writeFile(fx.hostPath("/shared/plain.txt"), "needle")
	if out := decode[searchResult](fx, fx.mustRun("file_search", m{"query": "needle"})); len(out.Matches) != 1 {
		t.Errorf("%+v", out)
	}
	fx.checkNoTempFiles()
}
