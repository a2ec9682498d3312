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

// fixture is a pack on a real folder, with files outside it that no tool may access.
type fixture struct {
	*testing.T
	dir   string // contains the folder of the workspaces and files outside it
	home  string // folder of the workspace
	pack  *Pack
	blobs *memoryBlobs
	tools map[string]reeve.Tool
}

// memoryBlobs is a [BlobStore] in memory. Put calls hook and returns fail, if they are set.
type memoryBlobs struct {
	mu   sync.Mutex
	data map[string][]byte
	puts int
	fail error
	hook func()
}

func (m *memoryBlobs) Put(_ context.Context, workspace string, b []byte) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hook != nil {
		m.hook()
	}
	if m.fail != nil {
		return "", m.fail
	}
	m.puts++
	m.data[workspace+"/"+reeve.Hash(b)] = append([]byte(nil), b...)
	return reeve.Hash(b), nil
}

func (m *memoryBlobs) Get(_ context.Context, workspace, hash string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b, ok := m.data[workspace+"/"+hash]; ok {
		return b, nil
	}
	return nil, reeve.Errorf(reeve.NotFound, "no such bytes")
}

const (
	ws           = "ws_test"
	secret       = "outside-secret-4711"
	vaultContent = "vault treasure\n"
)

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	fx := &fixture{T: t, dir: dir, home: filepath.Join(dir, "workspaces", ws),
		blobs: &memoryBlobs{data: map[string][]byte{}},
		tools: map[string]reeve.Tool{}}
	fx.newPack(Config{})
	for _, root := range []string{"shared", "tmp", "vault"} {
		fx.mkdir(filepath.Join(fx.home, root))
	}
	fx.writeFile(filepath.Join(dir, "reeve.db"), secret)
	fx.writeFile(filepath.Join(dir, "outside", "secret.txt"), secret)
	fx.writeFile(filepath.Join(fx.home, "vault", "key.txt"), vaultContent)
	return fx
}

// newPack replaces the pack and its tools by those with the settings c.
func (fx *fixture) newPack(c Config) {
	fx.Helper()
	c.Dir, c.Blobs = filepath.Join(fx.dir, "workspaces"), fx.blobs
	p, err := New(c)
	if err != nil {
		fx.Fatal(err)
	}
	fx.pack = p
	for _, t := range p.Tools() {
		fx.tools[t.ID] = t
	}
}

func (fx *fixture) mkdir(dir string) {
	fx.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		fx.Fatal(err)
	}
}

func (fx *fixture) writeFile(name, content string) {
	fx.Helper()
	fx.mkdir(filepath.Dir(name))
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		fx.Fatal(err)
	}
}

func (fx *fixture) symlink(target, name string) {
	fx.Helper()
	if err := os.Symlink(target, name); err != nil {
		fx.Fatal(err)
	}
}

// hostPath returns the path on disk of a virtual path.
func (fx *fixture) hostPath(v string) string { return filepath.Join(fx.home, filepath.FromSlash(v)) }

func (fx *fixture) readFile(v string) string {
	fx.Helper()
	b, err := os.ReadFile(fx.hostPath(v))
	if err != nil {
		fx.Fatal(err)
	}
	return string(b)
}

func (fx *fixture) checkAbsent(v string) {
	fx.Helper()
	if _, err := os.Lstat(fx.hostPath(v)); !os.IsNotExist(err) {
		fx.Errorf("%s exists", v)
	}
}

type m = map[string]any

func (fx *fixture) invocation(args any) *reeve.Invocation {
	fx.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		fx.Fatal(err)
	}
	return &reeve.Invocation{Workspace: ws, Operation: "op_test", Attempt: 1, Args: b}
}

// run calls Check and Handler of a tool, as the gate does.
func (fx *fixture) run(tool string, inv *reeve.Invocation) (string, error) {
	fx.Helper()
	t, ok := fx.tools[tool]
	if !ok {
		fx.Fatalf("no tool %s", tool)
	}
	if err := t.Check(context.Background(), inv); err != nil {
		return "", fx.checkError(err)
	}
	out, err := t.Handler(context.Background(), inv)
	if err != nil {
		return "", fx.checkError(err)
	}
	return fx.encode(out), nil
}

func (fx *fixture) encode(v any) string {
	fx.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		fx.Fatal(err)
	}
	if strings.Contains(string(b), fx.dir) || strings.Contains(string(b), secret) {
		fx.Errorf("the result reveals data outside the workspace: %s", b)
	}
	return string(b)
}

// checkError checks that err is a [reeve.Error] and names no folder of the host. It returns err.
func (fx *fixture) checkError(err error) error {
	fx.Helper()
	e, ok := err.(*reeve.Error)
	if !ok {
		fx.Errorf("not a typed error: %v", err)
		return err
	}
	for _, s := range []string{e.Error(), e.Message, e.Hint} {
		if strings.Contains(s, fx.dir) || strings.Contains(s, secret) || strings.Contains(s, tempPrefix+"0") {
			fx.Errorf("the error reveals data outside the workspace: %s", s)
		}
	}
	return err
}

func (fx *fixture) mustRun(tool string, args any) string {
	fx.Helper()
	out, err := fx.run(tool, fx.invocation(args))
	if err != nil {
		fx.Fatalf("%s %v: %v", tool, args, err)
	}
	return out
}

func (fx *fixture) wantError(code reeve.Code, tool string, args any) *reeve.Error {
	fx.Helper()
	out, err := fx.run(tool, fx.invocation(args))
	if err == nil {
		fx.Fatalf("%s %v was not refused: %s", tool, args, out)
	}
	if reeve.CodeOf(err) != code {
		fx.Fatalf("%s %v: want %s, got %v", tool, args, code, err)
	}
	return reeve.AsError(err)
}

// decode decodes the result of a call.
func decode[T any](fx *fixture, out string) T {
	fx.Helper()
	var v T
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		fx.Fatal(err)
	}
	return v
}

// runWithUndo runs a call and returns its undo.
func (fx *fixture) runWithUndo(tool string, args any) *reeve.Undo {
	fx.Helper()
	inv := fx.invocation(args)
	if _, err := fx.run(tool, inv); err != nil {
		fx.Fatalf("%s %v: %v", tool, args, err)
	}
	changed, undo, _ := inv.Close()
	if undo == nil {
		fx.Fatalf("%s %v has no undo", tool, args)
	}
	want := reeve.Token{Class: reeve.SemanticKey, Name: "FILE"}
	if len(changed) != 2 || changed[0] != want || changed[1].Class != reeve.EntityID || changed[1].Name[0] != '/' {
		fx.Errorf("%s emitted %v", tool, changed)
	}
	return undo
}

// runUndo runs an undo and returns the undo of that call.
func (fx *fixture) runUndo(u *reeve.Undo) *reeve.Undo {
	fx.Helper()
	return fx.runWithUndo(u.Tool, u.Args)
}

// checkNoTempFiles checks that the workspace has no temporary files of calls.
func (fx *fixture) checkNoTempFiles() {
	fx.Helper()
	err := filepath.WalkDir(fx.home, func(name string, _ os.DirEntry, err error) error {
		if isTempName(filepath.Base(name)) {
			fx.Errorf("temporary file: %s", name)
		}
		return err
	})
	if err != nil {
		fx.Error(err)
	}
}
