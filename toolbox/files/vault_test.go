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

func TestO02_OnlyVaultCopyReadsVault(t *testing.T) {
	fx := newFixture(t)
	for tool, args := range everyTool("/vault/key.txt") {
		if tool != "vault_copyto" {
			if e := fx.wantError(reeve.Denied, tool, args); !strings.Contains(e.Hint, "vault_copyto") {
				t.Errorf("%s: %s", tool, e.Hint)
			}
		}
	}
	for _, e := range decode[listResult](fx, fx.mustRun("file_list", m{"path": "/"})).Entries {
		if e.Name != "shared" && e.Name != "tmp" {
			t.Errorf("listed %s", e.Name)
		}
	}
	if out := decode[searchResult](fx, fx.mustRun("file_search", m{"query": "treasure"})); len(out.Matches) != 0 {
		t.Errorf("%+v", out)
	}
	fx.wantError(reeve.Denied, "vault_copyto", m{"from": "/vault/key.txt", "to": "/vault/copy.txt"})
	fx.wantError(reeve.Denied, "vault_copyto", m{"from": "/shared/a", "to": "/shared/b"})
	fx.wantError(reeve.Denied, "vault_copyto", m{"from": "/vault/../shared/a", "to": "/shared/b"})
	fx.wantError(reeve.Denied, "vault_copyto", m{"from": "/vault", "to": "/shared/b"})
	fx.wantError(reeve.ToolFailed, "vault_copyto", m{"from": "/vault/none", "to": "/shared/b"})
	fx.symlink("/etc/passwd", fx.hostPath("/vault/out"))
	fx.wantError(reeve.Denied, "vault_copyto", m{"from": "/vault/out", "to": "/shared/b"})
	fx.checkAbsent("/shared/b")
	fx.checkOutside()
}

func TestO02_VaultCopyIsTwoStepsOfOneOperation(t *testing.T) {
	fx := newFixture(t)
	out := decode[vaultResult](fx, fx.mustRun("vault_copyto", m{"from": "/vault/key.txt", "to": "/shared/k/key.txt"}))
	if len(out.Steps) != 2 || out.Steps[0].Step != "read" || out.Steps[0].Path != "/vault/key.txt" ||
		out.Steps[1].Step != "write" ||
		out.Steps[1].Path != "/shared/k/key.txt" {
		t.Errorf("%+v", out)
	}
	for _, s := range out.Steps {
		if s.Operation != "op_test" || s.Size != len(vaultContent) || s.Hash != reeve.Hash([]byte(vaultContent)) {
			t.Errorf("%+v", s)
		}
	}
	if fx.readFile("/shared/k/key.txt") != vaultContent {
		t.Error("not copied")
	}
	e := fx.wantError(reeve.AlreadyExists, "vault_copyto", m{"from": "/vault/key.txt", "to": "/shared/k/key.txt"})
	if !strings.Contains(e.Message, "step write") || !strings.Contains(e.Message, "step read succeeded") {
		t.Error(e.Message)
	}
	fx.writeFile(fx.hostPath("/shared/x"), "old")
	fx.runUndo(fx.runWithUndo("vault_copyto", m{"from": "/vault/key.txt", "to": "/shared/x", "overwrite": true}))
	if fx.readFile("/shared/x") != "old" {
		t.Error("not undone")
	}
	fx.checkOutside()
}

func TestO02_VaultPreviewHidesContent(t *testing.T) {
	fx := newFixture(t)
	args := m{"from": "/vault/key.txt", "to": "/shared/x"}
	p, err := fx.tools["vault_copyto"].Preview(context.Background(), fx.invocation(args))
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Change + p.Base; strings.Contains(s, "treasure") ||
		strings.Contains(s, reeve.Hash([]byte(vaultContent))) {
		t.Errorf("%+v", p)
	}
	// The approval covers the content at the time of the preview only.
	fx.writeFile(fx.hostPath("/vault/key.txt"), "other treasure")
	inv := fx.invocation(args)
	inv.Base = p.Base
	if _, err := fx.run("vault_copyto", inv); reeve.CodeOf(err) != reeve.Stale {
		t.Errorf("%v", err)
	}
	if o, _, err := fx.tools["vault_copyto"].Verify(context.Background(), inv); o != reeve.NotApplied || err != nil {
		t.Error(o, err)
	}
	fx.checkAbsent("/shared/x")
}

// TestO02_NoFunctionOpensBothSides parses vault.go. The functions that open the vault must not open anything else.
func TestO02_NoFunctionOpensBothSides(t *testing.T) {
	src, err := os.ReadFile("vault.go")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), "vault.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	opens := map[string]bool{"locate": true, "replace": true, "openRoot": true, "openDir": true, "createParents": true}
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
			t.Errorf("%s opens %d locations", name, n)
		}
	}
	if len(count) != len(want) {
		t.Errorf("opening functions: %v", count)
	}
}
