package sqlite_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var statement = regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|WITH) `)

// sourceStatements returns the statements in the source of package store, without the parts that are inserted at run
// time. Statements that are invalid without such parts are covered when the conformance suite runs them.
func sourceStatements(t *testing.T) (texts map[string]bool) {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), err)
	}
	var parsed []*ast.File
	fset := token.NewFileSet()
	for _, name := range files {
		if name == "../check.go" || strings.HasSuffix(name, "_test.go") { // the doctor reads every row on purpose
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	names := map[string]ast.Expr{} // constants of the package and of the current function
	addConstants := func(of ast.Node) {
		ast.Inspect(of, func(n ast.Node) bool {
			if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for _, s := range d.Specs {
					if v := s.(*ast.ValueSpec); len(v.Names) == len(v.Values) {
						for i, name := range v.Names {
							names[name.Name] = v.Values[i]
						}
					}
				}
			}
			_, isFunc := n.(*ast.FuncDecl)
			return !isFunc || n == of
		})
	}
	for _, f := range parsed {
		addConstants(f)
	}
	var fold func(e ast.Expr) string
	fold = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			s, _ := strconv.Unquote(e.Value)
			return s
		case *ast.BinaryExpr:
			return fold(e.X) + fold(e.Y)
		case *ast.ParenExpr:
			return fold(e.X)
		case *ast.Ident:
			if c := names[e.Name]; c != nil {
				return fold(c)
			}
		}
		return ""
	}
	texts = map[string]bool{}
	for _, f := range parsed {
		for _, d := range f.Decls {
			packageNames := maps.Clone(names)
			addConstants(d)
			ast.Inspect(d, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					for _, arg := range c.Args {
						if s := strings.Join(strings.Fields(fold(arg)), " "); statement.MatchString(s) {
							texts[s] = true
						}
					}
				}
				return true
			})
			names = packageNames
		}
	}
	return texts
}
