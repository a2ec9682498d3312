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

// allowedImports says which packages of the module each package may import. "." is the root, "*" means all. Every
// package must be listed; docs/internals/architecture.md describes their purpose.
var allowedImports = map[string][]string{
	".":                               {},
	"api":                             {"."},
	"client":                          {".", "api"},
	"contract":                        {},
	"internal/backoff":                {"."},
	"internal/canonjson":              {},
	"internal/cron":                   {"."},
	"internal/diff":                   {},
	"internal/keylock":                {},
	"internal/notify":                 {},
	"internal/redact":                 {},
	"internal/store":                  {"."},
	"internal/store/sqlite":           {".", "internal/store"},
	"internal/store/postgres":         {".", "internal/store"},
	"internal/store/storetest":        {".", "internal/store", "internal/store/postgres", "internal/store/sqlite"},
	"internal/embed":                  {".", "internal/embed/uselite"},
	"internal/embed/convert":          {"internal/embed/uselite"},
	"internal/embed/uselite":          {},
	"internal/gate":                   {".", "internal/store"},
	"internal/agent":                  {".", "internal/store", "model"},
	"internal/ask":                    {".", "internal/store", "model"},
	"internal/memory":                 {".", "internal/embed", "internal/store", "model"},
	"internal/automation":             {".", "internal/store", "internal/sandbox/js"},
	"internal/branch":                 {".", "internal/store", "internal/sandbox/confine"},
	"internal/chat":                   {".", "internal/store"},
	"internal/feed":                   {".", "internal/store"},
	"internal/sandbox":                {},
	"internal/sandbox/confine":        {".", "internal/sandbox/child", "internal/sandbox/confine/cell"},
	"internal/sandbox/child":          {},
	"internal/sandbox/lock":           {},
	"internal/sandbox/js":             {".", "internal/sandbox/child", "internal/sandbox/js/guest", "internal/sandbox/js/wire"},
	"internal/sandbox/js/guest":       {"internal/sandbox/js/wire", "internal/sandbox/lock"},
	"internal/sandbox/js/wire":        {},
	"internal/sandbox/js/worker":      {"internal/sandbox/js/guest"},
	"internal/sandbox/py":             {".", "internal/sandbox/child", "internal/sandbox/js/wire", "internal/sandbox/py/report"},
	"internal/sandbox/py/freeze":      {"internal/sandbox/py/guest"},
	"internal/sandbox/py/guest":       {"internal/sandbox/js/wire", "internal/sandbox/lock", "internal/sandbox/py/report"},
	"internal/sandbox/py/report":      {},
	"internal/sandbox/py/worker":      {"internal/sandbox/py/guest"},
	"internal/wake":                   {".", "internal/store"},
	"internal/httpapi":                {".", "api", "internal/store", "internal/chat", "internal/feed", "internal/gate", "internal/toolexport", "internal/wake", "model"},
	"internal/toolexport":             {".", "api"},
	"model":                           {"."},
	"toolbox/agents":                  {"."},
	"toolbox/files":                   {".", "internal/store"},
	"toolbox/journal":                 {".", "internal/store"},
	"toolbox/mail":                    {".", "internal/store"},
	"toolbox/mail/mailbox":            {"."},
	"toolbox/mail/sample":             {".", "internal/store"},
	"toolbox/utils":                   {"."},
	"toolbox/output":                  {".", "internal/store"},
	"toolbox/notes":                   {".", "internal/store"},
	"toolbox/notes/notefile":          {"."},
	"toolbox/media":                   {".", "internal/ask", "internal/store", "model"},
	"toolbox/python":                  {".", "internal/sandbox", "internal/sandbox/py"},
	"toolbox/schedules":               {".", "internal/store"},
	"toolbox/agentstate":              {".", "internal/store"},
	"toolbox/scratchpad":              {".", "internal/store"},
	"toolbox/shell":                   {".", "internal/sandbox/confine", "internal/sandbox"},
	"toolbox/users":                   {".", "internal/store"},
	"toolbox/text":                    {".", "internal/ask", "model"},
	"toolbox/web":                     {".", "toolbox/files", "toolbox/web/document"},
	"toolbox/web/document":            {".", "internal/sandbox/child", "internal/sandbox/lock"},
	"web":                             {},
	"host":                            {"*"},
	"reevetest":                       {".", "host", "internal/store/storetest"},
	"test/kit":                        {".", "api", "host", "internal/store/storetest", "model", "reevetest"},
	"cmd/reeve":                       {".", "api", "host", "client", "internal/store", "toolbox/mail/mailbox", "toolbox/notes/notefile"},
	"cmd/toolgen":                     {"."},
	"cmd/witness":                     {},
	"examples/toolgen":                {"."},
	"internal/sandbox/confine/cell":   {},
	"internal/sandbox/confine/worker": {"internal/sandbox/confine/cell"},
}

// helpers are packages that every package may import.
var helpers = []string{"internal/backoff", "internal/canonjson", "internal/cron", "internal/diff", "internal/keylock",
	"internal/notify", "internal/redact"}

// testPackages are packages for tests, which may import testing.
var testPackages = []string{"reevetest", "internal/store/storetest", "test/kit"}

// restrictedCalls are calls that only these files may make.
var restrictedCalls = map[string][]string{
	"time.Now":   {"clock.go"},
	"time.Since": {"clock.go"},
	"time.Until": {"clock.go"},
	"rand.Read":  {"id.go"},
}

// goroutines are the files that may start goroutines, each with the reason.
var goroutines = map[string]string{
	"client/follow.go":                   "a timer closes a silent connection",
	"cmd/reeve/chat.go":                  "reading the terminal must not block an interrupt",
	"cmd/reeve/evalrun.go":               "questions run in parallel; the command waits for them",
	"cmd/reeve/importmail.go":            "reading the next mail overlaps with sending",
	"cmd/reeve/main.go":                  "a second signal ends the process at once",
	"host/host.go":                       "the group of Run",
	"internal/automation/item_buffer.go": "a timer flushes buffered items that no call has written",
	"internal/automation/step.go":        "a step ends when its caller is cancelled",
	"internal/embed/local.go":            "texts are encoded in parallel, and a timer drops idle weights",
	"internal/gate/batch.go":             "read calls of one response run in parallel",
	"internal/gate/invoke.go":            "a handler that hangs must not block the gate",
	"internal/gate/worker.go":            "the group of Run, and the wait in Close",
	"internal/httpapi/idempotency.go":    "an idempotent request continues for a while after its client disconnects",
	"internal/httpapi/stream_permit.go":  "waiting for input ends when the permission is due for a check",
	"internal/httpapi/socket.go": "writing and monitoring run while the connection is read; the handler " +
		"waits for both",
	"internal/httpapi/streams.go": "streams end when the server stops",
	"internal/sandbox/confine/run_linux.go": "reading output and watching the deadline run beside the command; Run " +
		"waits for both",
	"internal/sandbox/js/call.go":           "the calls of a script run in parallel; Run waits for them",
	"internal/sandbox/js/guest/compute.go":  "timers stop a script that computes for too long",
	"internal/sandbox/js/guest/describe.go": "a timer limits the time for describing an error",
	"internal/sandbox/js/guest/worker.go": "timers stop a script at its deadline, and the worker if the script does " +
		"not stop",
	"internal/sandbox/js/pool.go":        "workers start in advance; Close waits for them",
	"internal/sandbox/js/process.go":     "a worker that does not start in time is killed",
	"internal/sandbox/js/run.go":         "a worker is killed at its deadline or when its caller is cancelled",
	"internal/sandbox/lock/lock.go":      "a worker checks that its host is alive",
	"internal/sandbox/py/guest/serve.go": "a worker exits some time after its deadline",
	"internal/sandbox/py/pool.go": "workers start in advance, finish starting without their caller, " +
		"and exit when idle; Close waits for them",
	"internal/sandbox/py/run.go":   "a worker is killed at its deadline or when its caller is cancelled",
	"internal/sandbox/py/spawn.go": "a worker that does not start in time is killed",
	"internal/store/postgres/postgres.go": "statements end when the engine is closed, and Close does not wait " +
		"for a server that hangs",
	"internal/wake/loop.go":             "the group of Run, with the runs it serves",
	"context.go":                        "a call continues during a server shutdown, but not beyond its run",
	"toolbox/web/send.go":               "a timer limits the wait for the rest of a long response",
	"toolbox/web/document/converter.go": "a worker that takes too long is killed",
	"toolbox/web/document/worker.go":    "a worker whose host is gone ends",
}

// goroutineStarters are methods that start a goroutine: of groups, and of timers and contexts.
var goroutineStarters = []string{"Go", "AfterFunc"}

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
		if !slices.Contains(testPackages, path.Dir(p)) {
			checkCode(t, fset, p, f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range seen {
		if _, ok := allowedImports[pkg]; !ok {
			t.Errorf("package %s is not in the architecture; add it to allowedImports and to "+
				"docs/internals/architecture.md",
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
		if imp == "testing" && !slices.Contains(testPackages, pkg) {
			t.Errorf("%s imports testing in shipped code", p)
		}
		to, ours := strings.CutPrefix(imp+"/", module+"/")
		if !ours {
			continue
		}
		if to = strings.TrimSuffix(to, "/"); to == "" {
			to = "."
		}
		if slices.Contains(testPackages, to) && !slices.Contains(testPackages, pkg) {
			t.Errorf("%s: %s imports a package for tests", fset.Position(s.Pos()), pkg)
		}
		if allowed := allowedImports[pkg]; !slices.Contains(allowed, "*") && !slices.Contains(allowed, to) &&
			!slices.Contains(helpers, to) {
			t.Errorf("%s: %s may not import %s", fset.Position(s.Pos()), pkg, to)
		}
	}
}

func checkCode(t *testing.T, fset *token.FileSet, p string, f *ast.File) {
	generated := ast.IsGenerated(f)
	hasGoroutine := false
	checkGoroutine := func(at token.Pos) {
		if hasGoroutine = true; goroutines[p] == "" {
			t.Errorf("%s: goroutine in an unlisted file; see goroutines in arch_test.go", fset.Position(at))
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil {
				t.Errorf("%s: no init functions", fset.Position(n.Pos()))
			}
			if n.Name.IsExported() && n.Doc == nil && !generated && (n.Recv == nil || isExportedReceiver(n.Recv)) &&
				!isWellKnownMethod(n) {
				t.Errorf("%s: %s is exported and has no comment", fset.Position(n.Pos()), n.Name.Name)
			}
		case *ast.GoStmt:
			checkGoroutine(n.Pos())
		case *ast.InterfaceType:
			if m := n.Methods.NumFields(); m > 5 && (m > maxMethods || p != "internal/store/engine.go") {
				t.Errorf("%s: the interface has %d methods; split it", fset.Position(n.Pos()), m)
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
				checkRestricted(t, fset, p, sel)
				if slices.Contains(goroutineStarters, sel.Sel.Name) {
					checkGoroutine(n.Pos())
				}
			}
		}
		return true
	})
	if !hasGoroutine && goroutines[p] != "" {
		t.Errorf("%s starts no goroutine; remove it from goroutines in arch_test.go", p)
	}
}

func checkRestricted(t *testing.T, fset *token.FileSet, p string, sel *ast.SelectorExpr) {
	x := ""
	switch e := sel.X.(type) {
	case *ast.Ident:
		x = e.Name
	case *ast.CallExpr:
		x = "()"
	case *ast.SelectorExpr:
		x = e.Sel.Name
	}
	if files, ok := restrictedCalls[x+"."+sel.Sel.Name]; ok && !slices.Contains(files, p) {
		t.Errorf("%s: %s.%s may be called in %v only", fset.Position(sel.Pos()), x, sel.Sel.Name, files)
	}
}

func isExportedReceiver(r *ast.FieldList) bool {
	e := r.List[0].Type
	if s, ok := e.(*ast.StarExpr); ok {
		e = s.X
	}
	id, ok := e.(*ast.Ident)
	return ok && id.IsExported()
}

// isWellKnownMethod reports whether a method needs no comment, because it implements a well-known interface.
func isWellKnownMethod(n *ast.FuncDecl) bool {
	return n.Recv != nil && slices.Contains([]string{"Error", "String", "Unwrap", "Exec", "Affect", "Query", "Err",
		"Close"}, n.Name.Name)
}

// TestHandlersAreRunByTheGateOnly checks rule 1: only the gate calls the Handler field of a tool.
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
