package files

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"reeve"
)

func TestO02_VaultIsReadByCopyAlone(t *testing.T) {
	w := newWorld(t)
	for tool, args := range everyTool("/vault/key.txt") {
		if tool != "vault_copyto" {
			if e := w.refuse(reeve.Denied, tool, args); !strings.Contains(e.Hint, "vault_copyto") {
				t.Errorf("%s: %s", tool, e.Hint)
			}
		}
	}
	for _, e := range says[listResult](w, w.ok("file_list", m{"path": "/"})).Entries {
		if e.Name != "shared" && e.Name != "tmp" {
			t.Errorf("listed %s", e.Name)
		}
	}
	if out := says[searchResult](w, w.ok("file_search", m{"query": "treasure"})); len(out.Matches) != 0 {
		t.Errorf("%+v", out)
	}
	w.refuse(reeve.Denied, "vault_copyto", m{"from": "/vault/key.txt", "to": "/vault/copy.txt"})
	w.refuse(reeve.Denied, "vault_copyto", m{"from": "/shared/a", "to": "/shared/b"})
	w.refuse(reeve.Denied, "vault_copyto", m{"from": "/vault/../shared/a", "to": "/shared/b"})
	w.refuse(reeve.Denied, "vault_copyto", m{"from": "/vault", "to": "/shared/b"})
	w.refuse(reeve.ToolFailed, "vault_copyto", m{"from": "/vault/none", "to": "/shared/b"})
	w.link("/etc/passwd", w.host("/vault/out"))
	w.refuse(reeve.Denied, "vault_copyto", m{"from": "/vault/out", "to": "/shared/b"})
	w.absent("/shared/b")
	w.outsideIntact()
}

func TestO02_VaultCopyIsTwoStepsOfOneOperation(t *testing.T) {
	w := newWorld(t)
	out := says[vaultResult](w, w.ok("vault_copyto", m{"from": "/vault/key.txt", "to": "/shared/k/key.txt"}))
	if len(out.Steps) != 2 || out.Steps[0].Step != "read" || out.Steps[0].Path != "/vault/key.txt" ||
		out.Steps[1].Step != "write" ||
		out.Steps[1].Path != "/shared/k/key.txt" {
		t.Errorf("%+v", out)
	}
	for _, s := range out.Steps {
		if s.Operation != "op_test" || s.Size != len(treasure) || s.Hash != reeve.Hash([]byte(treasure)) {
			t.Errorf("%+v", s)
		}
	}
	if w.get("/shared/k/key.txt") != treasure {
		t.Error("not copied")
	}
	e := w.refuse(reeve.AlreadyExists, "vault_copyto", m{"from": "/vault/key.txt", "to": "/shared/k/key.txt"})
	if !strings.Contains(e.Message, "step write") || !strings.Contains(e.Message, "step read was made") {
		t.Error(e.Message)
	}
	w.put(w.host("/shared/x"), "old")
	w.undo(w.do("vault_copyto", m{"from": "/vault/key.txt", "to": "/shared/x", "overwrite": true}))
	if w.get("/shared/x") != "old" {
		t.Error("not undone")
	}
	w.outsideIntact()
}

func TestO02_VaultPreviewTellsNothingOfTheContent(t *testing.T) {
	w := newWorld(t)
	args := m{"from": "/vault/key.txt", "to": "/shared/x"}
	p, err := w.tools["vault_copyto"].Preview(context.Background(), w.invocation(args))
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Change + p.Base; strings.Contains(s, "treasure") || strings.Contains(s, reeve.Hash([]byte(treasure))) {
		t.Errorf("%+v", p)
	}
	// What a person approved is this content, not whatever is there later.
	w.put(w.host("/vault/key.txt"), "other treasure")
	inv := w.invocation(args)
	inv.Base = p.Base
	if _, err := w.run("vault_copyto", inv); reeve.CodeOf(err) != reeve.Stale {
		t.Errorf("%v", err)
	}
	if o, _, err := w.tools["vault_copyto"].Verify(context.Background(), inv); o != reeve.NotApplied || err != nil {
		t.Error(o, err)
	}
	w.absent("/shared/x")
}

// TestO02_NoFunctionHoldsBothSides reads the source: the function that opens the vault opens nothing else.
func TestO02_NoFunctionHoldsBothSides(t *testing.T) {
	src, err := os.ReadFile("vault.go")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), "vault.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	opens := map[string]bool{"at": true, "replace": true, "root": true, "folder": true, "makeWay": true}
	count := map[string]int{}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if s, ok := c.Fun.(*ast.SelectorExpr); ok && opens[s.Sel.Name] {
					count[f.Name.Name]++
				}
			}
			return true
		})
	}
	want := map[string]int{"readVault": 1, "statVault": 1, "writeCopy": 1}
	for name, n := range count {
		if want[name] != n {
			t.Errorf("%s opens %d places", name, n)
		}
	}
	if len(count) != len(want) {
		t.Errorf("opening functions: %v", count)
	}
}
