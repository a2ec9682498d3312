package files

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reeve"
)

// world is a pack on a real folder, with things beside it that no tool may reach.
type world struct {
	*testing.T
	top   string // holds the workspaces' folder and what is outside it
	home  string // of the workspace
	pack  *Pack
	keep  *memory
	tools map[string]reeve.Tool
}

// memory is a keeper in a map.
type memory struct {
	mu   sync.Mutex
	kept map[string][]byte
	puts int
	fail error
	hook func()
}

func (m *memory) Put(_ context.Context, workspace string, b []byte) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hook != nil {
		m.hook()
	}
	if m.fail != nil {
		return "", m.fail
	}
	m.puts++
	m.kept[workspace+"/"+reeve.Hash(b)] = append([]byte(nil), b...)
	return reeve.Hash(b), nil
}

func (m *memory) Get(_ context.Context, workspace, hash string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b, ok := m.kept[workspace+"/"+hash]; ok {
		return b, nil
	}
	return nil, reeve.Errorf(reeve.NotFound, "no such bytes")
}

const (
	ws       = "ws_test"
	secret   = "outside-secret-4711"
	treasure = "vault treasure\n"
)

func newWorld(t *testing.T) *world {
	t.Helper()
	top := t.TempDir()
	w := &world{T: t, top: top, home: filepath.Join(top, "workspaces", ws), keep: &memory{kept: map[string][]byte{}},
		tools: map[string]reeve.Tool{}}
	w.limit(Config{})
	for _, root := range []string{"shared", "tmp", "vault"} {
		w.mkdir(filepath.Join(w.home, root))
	}
	w.put(filepath.Join(top, "reeve.db"), secret)
	w.put(filepath.Join(top, "outside", "secret.txt"), secret)
	w.put(filepath.Join(w.home, "vault", "key.txt"), treasure)
	return w
}

// limit makes the pack anew with other limits.
func (w *world) limit(c Config) {
	w.Helper()
	c.Dir, c.Keep = filepath.Join(w.top, "workspaces"), w.keep
	p, err := New(c)
	if err != nil {
		w.Fatal(err)
	}
	w.pack = p
	for _, t := range p.Tools() {
		w.tools[t.ID] = t
	}
}

func (w *world) mkdir(dir string) {
	w.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.Fatal(err)
	}
}

func (w *world) put(name, content string) {
	w.Helper()
	w.mkdir(filepath.Dir(name))
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *world) link(target, name string) {
	w.Helper()
	if err := os.Symlink(target, name); err != nil {
		w.Fatal(err)
	}
}

// host is where a virtual path lies on the disk.
func (w *world) host(v string) string { return filepath.Join(w.home, filepath.FromSlash(v)) }

func (w *world) get(v string) string {
	w.Helper()
	b, err := os.ReadFile(w.host(v))
	if err != nil {
		w.Fatal(err)
	}
	return string(b)
}

func (w *world) absent(v string) {
	w.Helper()
	if _, err := os.Lstat(w.host(v)); !os.IsNotExist(err) {
		w.Errorf("%s is there", v)
	}
}

type m = map[string]any

func (w *world) invocation(args any) *reeve.Invocation {
	w.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		w.Fatal(err)
	}
	return &reeve.Invocation{Workspace: ws, Operation: "op_test", Attempt: 1, Args: b}
}

// run does what the gate does: check, then handle.
func (w *world) run(tool string, inv *reeve.Invocation) (string, error) {
	w.Helper()
	t, ok := w.tools[tool]
	if !ok {
		w.Fatalf("no tool %s", tool)
	}
	if err := t.Check(context.Background(), inv); err != nil {
		return "", w.proper(err)
	}
	out, err := t.Handler(context.Background(), inv)
	if err != nil {
		return "", w.proper(err)
	}
	return w.text(out), nil
}

func (w *world) text(v any) string {
	w.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		w.Fatal(err)
	}
	if strings.Contains(string(b), w.top) || strings.Contains(string(b), secret) {
		w.Errorf("the result shows what is outside: %s", b)
	}
	return string(b)
}

// proper sees that an error is typed and names no folder of the host.
func (w *world) proper(err error) error {
	w.Helper()
	e, ok := err.(*reeve.Error)
	if !ok {
		w.Errorf("not a typed error: %v", err)
		return err
	}
	for _, s := range []string{e.Error(), e.Message, e.Hint} {
		if strings.Contains(s, w.top) || strings.Contains(s, secret) || strings.Contains(s, ownPrefix+"0") {
			w.Errorf("the error shows what is outside: %s", s)
		}
	}
	return err
}

func (w *world) ok(tool string, args any) string {
	w.Helper()
	out, err := w.run(tool, w.invocation(args))
	if err != nil {
		w.Fatalf("%s %v: %v", tool, args, err)
	}
	return out
}

func (w *world) refuse(code reeve.Code, tool string, args any) *reeve.Error {
	w.Helper()
	out, err := w.run(tool, w.invocation(args))
	if err == nil {
		w.Fatalf("%s %v was not refused: %s", tool, args, out)
	}
	if reeve.CodeOf(err) != code {
		w.Fatalf("%s %v: want %s, got %v", tool, args, code, err)
	}
	return reeve.AsError(err)
}

// says decodes a result.
func says[T any](w *world, out string) T {
	w.Helper()
	var v T
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		w.Fatal(err)
	}
	return v
}

// do runs a call and gives the undo it named.
func (w *world) do(tool string, args any) *reeve.Undo {
	w.Helper()
	inv := w.invocation(args)
	if _, err := w.run(tool, inv); err != nil {
		w.Fatalf("%s %v: %v", tool, args, err)
	}
	changed, undo, _ := inv.Close()
	if undo == nil {
		w.Fatalf("%s %v named no undo", tool, args)
	}
	want := reeve.Token{Class: reeve.SemanticKey, Name: "FILE"}
	if len(changed) != 2 || changed[0] != want || changed[1].Class != reeve.EntityID || changed[1].Name[0] != '/' {
		w.Errorf("%s emitted %v", tool, changed)
	}
	return undo
}

// undo runs an undo and gives the undo of that.
func (w *world) undo(u *reeve.Undo) *reeve.Undo { w.Helper(); return w.do(u.Tool, u.Args) }

// clean sees that no call left anything of its own behind.
func (w *world) clean() {
	w.Helper()
	err := filepath.WalkDir(w.home, func(name string, _ os.DirEntry, err error) error {
		if isOwn(filepath.Base(name)) {
			w.Errorf("left behind: %s", name)
		}
		return err
	})
	if err != nil {
		w.Error(err)
	}
}
