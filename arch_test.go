package reeve_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

const module = "reeve"

// arrows is the whole architecture: which of our packages each package may import. "." is the root. A package that is
// not here is not part of the architecture; docs/internals/architecture.md says what each package is for.
var arrows = map[string][]string{
	".":                        {},
	"api":                      {"."},
	"client":                   {".", "api"},
	"contract":                 {},
	"internal/backoff":         {"."},
	"internal/canonjson":       {},
	"internal/cron":            {"."},
	"internal/diff":            {},
	"internal/keylock":         {},
	"internal/notify":          {},
	"internal/redact":          {},
	"internal/store":           {"."},
	"internal/store/sqlite":    {".", "internal/store"},
	"internal/store/postgres":  {".", "internal/store"},
	"internal/store/storetest": {".", "internal/store", "internal/store/postgres", "internal/store/sqlite"},
	"internal/gate":            {".", "internal/store"},
	"internal/agent":           {".", "internal/store", "model"},
	"internal/memory":          {".", "internal/store", "model"},
	"internal/automation":      {".", "internal/store", "internal/sandbox/js"},
	"internal/branch":          {".", "internal/store", "internal/sandbox/confine"},
	"internal/chat":            {".", "internal/store"},
	"internal/sandbox":         {},
	"internal/sandbox/confine": {".", "internal/sandbox/child", "internal/sandbox/confine/cell"},
	"internal/sandbox/child":   {},
	"internal/sandbox/lock":    {},
	"internal/sandbox/js": {".", "internal/sandbox/child", "internal/sandbox/js/guest",
		"internal/sandbox/js/wire"},
	"internal/sandbox/js/guest":  {"internal/sandbox/js/wire", "internal/sandbox/lock"},
	"internal/sandbox/js/wire":   {},
	"internal/sandbox/js/worker": {"internal/sandbox/js/guest"},
	"internal/sandbox/py": {".", "internal/sandbox/child", "internal/sandbox/js/wire",
		"internal/sandbox/py/report"},
	"internal/sandbox/py/freeze": {"internal/sandbox/py/guest"},
	"internal/sandbox/py/guest": {"internal/sandbox/js/wire", "internal/sandbox/lock",
		"internal/sandbox/py/report"},
	"internal/sandbox/py/report": {},
	"internal/sandbox/py/worker": {"internal/sandbox/py/guest"},
	"internal/wake":              {".", "internal/store"},
	"internal/httpapi": {".", "api", "internal/store", "internal/chat", "internal/gate", "internal/wake",
		"model"},
	"model":                           {"."},
	"toolbox/agents":                  {"."},
	"toolbox/files":                   {".", "internal/store"},
	"toolbox/journal":                 {".", "internal/store"},
	"toolbox/mail":                    {".", "internal/store"},
	"toolbox/mail/mailbox":            {"."},
	"toolbox/mail/sample":             {".", "internal/store"},
	"toolbox/utils":                   {"."},
	"toolbox/output":                  {".", "internal/store"},
	"toolbox/media":                   {".", "internal/store"},
	"toolbox/python":                  {".", "internal/sandbox", "internal/sandbox/py"},
	"toolbox/schedules":               {".", "internal/store"},
	"toolbox/scratchpad":              {".", "internal/store"},
	"toolbox/shell":                   {".", "internal/sandbox/confine", "internal/sandbox"},
	"toolbox/users":                   {".", "internal/store"},
	"toolbox/web":                     {"."},
	"host":                            {"*"},
	"reevetest":                       {".", "host", "internal/store/storetest"},
	"cmd/reeve":                       {".", "api", "host", "client", "internal/store", "toolbox/mail/mailbox"},
	"cmd/toolgen":                     {"."},
	"cmd/witness":                     {},
	"examples/toolgen":                {"."},
	"internal/sandbox/confine/cell":   {},
	"internal/sandbox/confine/worker": {"internal/sandbox/confine/cell"},
}

// helpers are packages that every other may import.
var helpers = []string{"internal/backoff", "internal/canonjson", "internal/cron", "internal/diff", "internal/keylock",
	"internal/notify", "internal/redact"}

// testKits are packages for tests, which may import testing.
var testKits = []string{"reevetest", "internal/store/storetest"}

// pinned calls belong in these files only.
var pinned = map[string][]string{
	"time.Now":   {"clock.go"},
	"time.Since": {"clock.go"},
	"time.Until": {"clock.go"},
	"rand.Read":  {"id.go"},
}

// goroutines are started in these files only, each for a reason.
var goroutines = map[string]string{
	"client/follow.go":        "a connection that died in silence is given up",
	"cmd/reeve/chat.go":       "reading the terminal must not keep an interrupt from being heard",
	"cmd/reeve/evalrun.go":    "questions are asked side by side; the command waits for them",
	"cmd/reeve/importmail.go": "mail is read while what was read before is sent",
	"cmd/reeve/main.go":       "a second signal ends the process at once",
	"host/host.go":            "Run's own group",
	"internal/automation/item_buffer.go": "what a script has noted is written after a while, if no call takes it " +
		"along",
	"internal/automation/step.go":     "a step ends when whoever waits for it leaves",
	"internal/gate/batch.go":          "reads of one response run together",
	"internal/gate/invoke.go":         "a handler that hangs must not take the gate with it",
	"internal/gate/worker.go":         "Run's own group, and Close's wait",
	"internal/httpapi/idempotency.go": "a request that is made once goes on for a while without its caller",
	"internal/httpapi/permit.go":      "waiting for a client's next lines ends when its permit is due for a check",
	"internal/httpapi/socket.go": "a connection is spoken to and watched while it is listened to; it " +
		"waits for both",
	"internal/httpapi/streams.go": "streams end when the server does",
	"internal/sandbox/confine/run_linux.go": "output is drained and the deadline watched while the command runs; Run " +
		"waits for both",
	"internal/sandbox/js/call.go":           "a script's calls run side by side; Run waits for them",
	"internal/sandbox/js/guest/describe.go": "a script's error may take no longer to describe than this",
	"internal/sandbox/js/guest/worker.go": "a script whose time is over is stopped, and a worker that does not " +
		"stop ends",
	"internal/sandbox/js/pool.go":        "workers are started ahead; Close waits for them",
	"internal/sandbox/js/process.go":     "a worker that does not start is killed",
	"internal/sandbox/js/run.go":         "a worker whose time is over, or whose caller leaves, is killed",
	"internal/sandbox/lock/lock.go":      "a worker looks whether its host is still there",
	"internal/sandbox/py/guest/serve.go": "a worker whose time is long over ends",
	"internal/sandbox/py/pool.go": "workers are started ahead, go on starting when their caller leaves, " +
		"and end when they were idle; Close waits for them",
	"internal/sandbox/py/run.go":   "a worker whose time is over, or whose caller leaves, is killed",
	"internal/sandbox/py/spawn.go": "a worker that does not start is killed",
	"internal/store/postgres/postgres.go": "statements end when the engine is closed, and closing does not wait " +
		"for a server that hangs",
	"internal/wake/loop.go": "Run's own group, with the runs that it serves",
	"context.go":            "a call outlives a server that is told to stop, and not its run",
	"toolbox/web/send.go":   "the rest of a long answer is waited for no longer than this",
}

// starters are calls that start one, besides the statement: of groups, and of what waits for a time or a context.
var starters = []string{"Go", "AfterFunc"}

const (
	maxLines     = 800
	maxTestLines = 1200
	maxMethods   = 10 // store.Engine, and store.Conn beside it has 6; every other interface has at most 5
)

func TestArchitecture(t *testing.T) {
	fset := token.NewFileSet()
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "testdata" || name == "node_modules" || name == "tools" || name == "bench" ||
			len(name) > 1 && name[0] == '.') {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		p = filepath.ToSlash(p)
		f, err := parser.ParseFile(fset, p, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		if !ast.IsGenerated(f) {
			checkWidth(t, fset, p, f)
		}
		lines := fset.File(f.Pos()).LineCount()
		if strings.HasSuffix(p, "_test.go") {
			if lines > maxTestLines {
				t.Errorf("%s has %d lines; split it (limit %d)", p, lines, maxTestLines)
			}
			return nil
		}
		if lines > maxLines {
			t.Errorf("%s has %d lines; split it (limit %d)", p, lines, maxLines)
		}
		seen[path.Dir(p)] = true
		checkImports(t, fset, p, f)
		if !slices.Contains(testKits, path.Dir(p)) {
			checkCode(t, fset, p, f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range seen {
		if _, ok := arrows[pkg]; !ok {
			t.Errorf("package %s is not in the architecture; add it to arrows and to docs/internals/architecture.md",
				pkg)
		}
	}
}

// maxColumns is the longest line in columns. A tab counts as four.
const maxColumns = 120

// checkWidth reports long lines. Lines with a raw string, such as struct tags and scripts, may be longer, because a
// line break would change the string. So may build constraints, the two letter tables of mail search and, in tests,
// lines with any string.
func checkWidth(t *testing.T, fset *token.FileSet, p string, f *ast.File) {
	text, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	isRaw := map[int]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if ok && lit.Kind == token.STRING && (lit.Value[0] == '`' || strings.HasSuffix(p, "_test.go")) {
			for line := fset.Position(lit.Pos()).Line; line <= fset.Position(lit.End()).Line; line++ {
				isRaw[line] = true
			}
		}
		return true
	})
	for i, line := range strings.Split(string(text), "\n") {
		columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
		if columns <= maxColumns || isRaw[i+1] || strings.HasPrefix(line, "//go:build") ||
			p == "internal/store/mail_fold.go" {
			continue
		}
		t.Errorf("%s:%d has %d columns; break the line (limit %d)", p, i+1, columns, maxColumns)
	}
}

func checkImports(t *testing.T, fset *token.FileSet, p string, f *ast.File) {
	pkg := path.Dir(p)
	for _, s := range f.Imports {
		imp, _ := strconv.Unquote(s.Path.Value)
		if imp == "testing" && !slices.Contains(testKits, pkg) {
			t.Errorf("%s imports testing in shipped code", p)
		}
		to, ours := strings.CutPrefix(imp+"/", module+"/")
		if !ours {
			continue
		}
		if to = strings.TrimSuffix(to, "/"); to == "" {
			to = "."
		}
		if slices.Contains(testKits, to) && !slices.Contains(testKits, pkg) {
			t.Errorf("%s: %s imports a test kit", fset.Position(s.Pos()), pkg)
		}
		if allowed := arrows[pkg]; !slices.Contains(allowed, "*") && !slices.Contains(allowed, to) &&
			!slices.Contains(helpers, to) {
			t.Errorf("%s: %s may not import %s", fset.Position(s.Pos()), pkg, to)
		}
	}
}

func checkCode(t *testing.T, fset *token.FileSet, p string, f *ast.File) {
	generated := ast.IsGenerated(f)
	starts := false
	begins := func(at token.Pos) {
		if starts = true; goroutines[p] == "" {
			t.Errorf("%s: a goroutine in an unlisted file; see goroutines in arch_test.go", fset.Position(at))
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil {
				t.Errorf("%s: no init functions", fset.Position(n.Pos()))
			}
			if n.Name.IsExported() && n.Doc == nil && !generated && (n.Recv == nil || exportedRecv(n.Recv)) &&
				!selfEvident(n) {
				t.Errorf("%s: %s is exported and has no comment", fset.Position(n.Pos()), n.Name.Name)
			}
		case *ast.GoStmt:
			begins(n.Pos())
		case *ast.InterfaceType:
			if m := n.Methods.NumFields(); m > 5 && (m > maxMethods || p != "internal/store/engine.go") {
				t.Errorf("%s: an interface of %d methods", fset.Position(n.Pos()), m)
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
				checkPinned(t, fset, p, sel)
				if slices.Contains(starters, sel.Sel.Name) {
					begins(n.Pos())
				}
			}
		}
		return true
	})
	if !starts && goroutines[p] != "" {
		t.Errorf("%s starts no goroutine; take it out of goroutines in arch_test.go", p)
	}
}

func checkPinned(t *testing.T, fset *token.FileSet, p string, sel *ast.SelectorExpr) {
	x := ""
	switch e := sel.X.(type) {
	case *ast.Ident:
		x = e.Name
	case *ast.CallExpr:
		x = "()"
	case *ast.SelectorExpr:
		x = e.Sel.Name
	}
	if files, ok := pinned[x+"."+sel.Sel.Name]; ok && !slices.Contains(files, p) {
		t.Errorf("%s: %s.%s belongs in %v only", fset.Position(sel.Pos()), x, sel.Sel.Name, files)
	}
}

func exportedRecv(r *ast.FieldList) bool {
	e := r.List[0].Type
	if s, ok := e.(*ast.StarExpr); ok {
		e = s.X
	}
	id, ok := e.(*ast.Ident)
	return ok && id.IsExported()
}

// selfEvident methods implement interfaces that everybody knows.
func selfEvident(n *ast.FuncDecl) bool {
	return n.Recv != nil && slices.Contains([]string{"Error", "String", "Unwrap", "Exec", "Affect", "Query", "Err",
		"Close"}, n.Name.Name)
}

// TestHandlersAreRunByTheGateOnly pins rule 1: nothing outside the gate calls a tool's Handler field.
func TestHandlersAreRunByTheGateOnly(t *testing.T) {
	fset := token.NewFileSet()
	found := 0
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") ||
			strings.Contains(p, "testdata") {
			return err
		}
		f, err := parser.ParseFile(fset, p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Handler" || len(call.Args) != 2 { // Handler(ctx, inv)
				return true
			}
			found++
			if filepath.ToSlash(p) != "internal/gate/invoke.go" {
				t.Errorf("%s calls a tool's handler; only the gate may", fset.Position(call.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found != 1 {
		t.Errorf("found %d calls of a handler, want exactly 1", found)
	}
}
