package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"reeve"
)

// reevePath is the import path, and the name, of the package that generated code uses.
const reevePath = "reeve"

// tool is a marked function.
type tool struct {
	pos    token.Pos            // position of the function's name
	fn     string               // the function's name
	decl   reeve.Tool           // tool as described by the directive and the doc comment
	keyPos map[string]token.Pos // positions of the keys of the directive
	verify string               // name of the verify function, or empty
	params []param              // the arguments, unless they are one struct
	args   types.Type           // type of the argument struct
	result types.Type           // nil if the function returns only an error
}

// param is an argument: a field of the struct that arguments are decoded into.
type param struct {
	field    string // name of the field in Go
	name     string // name of the field in JSON
	doc      string
	typ      types.Type
	optional bool
}

// findTools returns the functions with a directive, sorted by id, and reports their problems.
func (s *source) findTools(funcName string) []tool {
	var list []tool
	for _, f := range s.files {
		docs := map[*ast.CommentGroup]*ast.FuncDecl{}
		for _, d := range f.Decls {
			if fd, ok := d.(*ast.FuncDecl); ok && fd.Doc != nil {
				docs[fd.Doc] = fd
			}
		}
		for _, group := range f.Comments {
			fd := docs[group]
			marks := s.findDirectives(group, fd)
			if fd == nil || len(marks) == 0 {
				continue
			}
			for _, m := range marks[1:] {
				s.add(m.Pos(), "%s has two %s lines", fd.Name.Name, directive)
			}
			list = append(list, s.parseTool(fd, marks[0]))
		}
	}
	if len(list) > 0 {
		s.checkNames(funcName)
	}
	byID := map[string]tool{}
	for _, t := range list {
		if first, ok := byID[t.decl.ID]; ok {
			s.add(t.pos, "the id %s is already used by %s at %s", t.decl.ID, first.fn, s.fset.Position(first.pos))
			continue
		}
		byID[t.decl.ID] = t
	}
	slices.SortFunc(list, func(a, b tool) int { return cmp.Compare(a.decl.ID, b.decl.ID) })
	return list
}

// findDirectives returns the directives of a comment. It reports misplaced and misspelt directives, because ignoring
// them would silently drop a tool.
func (s *source) findDirectives(group *ast.CommentGroup, fd *ast.FuncDecl) []*ast.Comment {
	var list []*ast.Comment
	for _, c := range group.List {
		word, _, _ := strings.Cut(strings.ReplaceAll(c.Text, "\t", " "), " ")
		switch {
		case word == directive && fd == nil:
			s.add(c.Pos(), "%s must be in the doc comment of a top-level function", directive)
		case word == directive:
			list = append(list, c)
		case strings.HasPrefix(word, "//reeve:"):
			s.add(c.Pos(), "unknown directive %s; use %s", word, directive)
		case fd != nil && strings.HasPrefix(c.Text, "// reeve:tool"):
			s.add(c.Pos(), "write %s without a space after the slashes", directive)
		}
	}
	return list
}

// checkNames reports declarations of the package that conflict with names in the generated code.
func (s *source) checkNames(funcName string) {
	scope := s.pkg.Scope()
	for _, name := range scope.Names() {
		_, predeclaredType := types.Universe.Lookup(name).(*types.TypeName)
		switch {
		case name == funcName:
			s.add(scope.Lookup(name).Pos(), "%s is the name of the generated function; rename this or set -func", name)
		case predeclaredType || name == "nil":
			s.add(scope.Lookup(name).Pos(), "generated code needs the predeclared %s; rename this declaration", name)
		}
	}
}

// parseTool parses a function with a directive and reports its problems.
func (s *source) parseTool(fd *ast.FuncDecl, mark *ast.Comment) tool {
	t := tool{pos: fd.Name.Pos(), fn: fd.Name.Name, keyPos: map[string]token.Pos{}}
	t.decl.ID = snakeCase(t.fn)
	s.applySettings(&t, s.parseSettings(mark.Text[len(directive):], mark.Pos()+token.Pos(len(directive))))
	doc := parseComment(fd.Doc)
	t.decl.Description = doc.text
	if rest, ok := strings.CutPrefix(doc.text, t.fn); ok &&
		(rest == "" || strings.ContainsRune(" ,.:;\n", rune(rest[0]))) {
		t.decl.Description = t.decl.ID + rest
	}
	if doc.text == "" {
		s.add(t.pos, "%s needs a doc comment, which is the description for the model", t.fn)
	}
	s.checkDeclaration(&t)
	s.checkVerifier(&t)
	s.checkSignature(&t, fd, doc.items)
	return t
}

// checkVerifier checks the verify function of a tool with effect=verifiable.
func (s *source) checkVerifier(t *tool) {
	pos, named := t.keyPos["verify"]
	switch verifiable := t.decl.Effect == reeve.Verifiable; {
	case verifiable && !named:
		s.add(t.keyPos["effect"], "effect=verifiable needs verify=FUNCTION, which looks up the outcome of a call")
		return
	case !verifiable && named:
		s.add(pos, "verify is only for effect=verifiable")
		return
	case !named:
		return
	}
	const want = "func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error)"
	fn, ok := s.pkg.Scope().Lookup(t.verify).(*types.Func)
	if !ok {
		s.add(pos, "verify=%s: function not found in the package", t.verify)
		return
	}
	sig := fn.Signature()
	unnamed := func(list *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range list.Variables() {
			vars = append(vars, types.NewVar(token.NoPos, nil, "", v.Type()))
		}
		return types.NewTuple(vars...)
	}
	plain := types.NewSignatureType(nil, nil, nil, unnamed(sig.Params()), unnamed(sig.Results()), sig.Variadic())
	have := types.TypeString(plain, (*types.Package).Path)
	if have = strings.ReplaceAll(have, "interface{}", "any"); have != want || sig.TypeParams() != nil {
		s.add(pos, "verify=%s: must be a %s, not a %s", t.verify, want, have)
	}
}

// checkSignature checks the signature of a function and sets the arguments and the result of the tool.
func (s *source) checkSignature(t *tool, fd *ast.FuncDecl, items []item) {
	if fd.Recv != nil {
		s.add(fd.Recv.Pos(), "%s is a method; a tool must be a function", t.fn)
	}
	if fd.Type.TypeParams != nil {
		s.add(fd.Type.TypeParams.Pos(), "%s has type parameters; a tool must not be generic", t.fn)
		return // the types are unknown without instantiation
	}
	if t.fn == "_" || fd.Recv == nil && (t.fn == "init" || t.fn == "main" && s.pkg.Name() == "main") {
		s.add(t.pos, "a function named %s cannot be called", t.fn)
		return
	}
	fn, ok := s.info.Defs[fd.Name].(*types.Func)
	if !ok {
		s.reportUnresolved(fd.Name, t.fn) // for example because of a duplicate declaration
		return
	}
	s.checkArguments(t, fd, fn.Signature(), items)
	s.checkResults(t, fd, fn.Signature())
}

// checkResults checks that a function returns (R, error) or error.
func (s *source) checkResults(t *tool, fd *ast.FuncDecl, sig *types.Signature) {
	res := sig.Results()
	if res.Len() == 0 {
		s.add(t.pos, "%s must return an error, alone or after its result", t.fn)
		return
	}
	last := res.At(res.Len() - 1).Type()
	exprs := expandFields(fd.Type.Results)
	isError := func(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }
	if !isError(last) {
		s.add(exprs[res.Len()-1].Pos(), "the last result of %s must be error, not %s", t.fn, s.typeName(last))
	}
	if res.Len() > 2 {
		s.add(exprs[2].Pos(), "%s has %d results; a tool returns one result and an error", t.fn, res.Len())
	}
	if res.Len() != 2 {
		return
	}
	t.result = res.At(0).Type()
	if isError(t.result) {
		s.add(exprs[0].Pos(), "the result of %s is an error; return errors only last", t.fn)
		return
	}
	s.checkType(exprs[0], "the result of "+t.fn, t.result, true)
}

// checkArguments checks the parameters of a function and sets the arguments of the tool.
func (s *source) checkArguments(t *tool, fd *ast.FuncDecl, sig *types.Signature, items []item) {
	vars, exprs := sig.Params(), expandFields(fd.Type.Params)
	from := 0
	if vars.Len() > 0 && isNamed(vars.At(0).Type(), "context", "Context") {
		from = 1
	} else if vars.Len() > 0 && types.Unalias(vars.At(0).Type()) == types.Typ[types.Invalid] &&
		isContextExpr(exprs[0]) {
		from = 1
		s.reportUnresolved(exprs[0], "the first parameter of "+t.fn)
	} else {
		s.add(fd.Type.Params.Pos(), "the first parameter of %s must be a context.Context", t.fn)
	}
	docs := map[string]item{}
	for _, it := range items {
		if first, ok := docs[it.name]; ok {
			s.add(it.pos, "%s is described twice, first at %s", it.name, s.fset.Position(first.pos))
			continue
		}
		docs[it.name] = it
	}
	own := vars.Len() == from+1 && !sig.Variadic() && isArgumentStruct(vars.At(from).Type())
	seen := map[string]string{}
	fields := names{}
	for i := from; i < vars.Len(); i++ {
		v, expr := vars.At(i), exprs[i]
		what := fmt.Sprintf("parameter %s of %s", v.Name(), t.fn)
		doc := docs[v.Name()].text
		if !own {
			delete(docs, v.Name())
		}
		if from == 0 && isNamed(v.Type(), "context", "Context") {
			continue // its position is reported above
		}
		if sig.Variadic() && i == vars.Len()-1 {
			s.add(expr.Pos(), "%s is variadic; use a slice", what)
			continue
		}
		if own {
			s.checkType(expr, what, v.Type(), false)
			t.args = v.Type()
			break
		}
		if v.Name() == "" || v.Name() == "_" {
			s.add(cmp.Or(v.Pos(), expr.Pos()),
				"a parameter of %s has no name; name it, because the argument gets the same name", t.fn)
			s.checkType(expr, "a parameter of "+t.fn, v.Type(), false)
			continue
		}
		_, optional := types.Unalias(v.Type()).Underlying().(*types.Pointer)
		p := param{name: snakeCase(v.Name()), doc: doc, typ: v.Type(), optional: optional}
		switch other, taken := seen[p.name]; {
		case !isArgumentName(p.name):
			s.add(v.Pos(), "%s: %q is not a valid argument name; use ASCII letters and digits", what, p.name)
		case taken:
			s.add(v.Pos(), "%s has the same argument name, %s, as %s", what, p.name, other)
		default:
			p.field = fields.pick(camelCase(p.name))
		}
		seen[p.name] = v.Name()
		if ptr, ok := types.Unalias(v.Type()).(*types.Pointer); ok && vars.Len() == from+1 &&
			isArgumentStruct(ptr.Elem()) {
			s.add(expr.Pos(), "%s is a pointer to a struct; use the struct", what)
		}
		s.checkType(expr, what, v.Type(), false)
		t.params = append(t.params, p)
	}
	for _, it := range items {
		switch _, left := docs[it.name]; {
		case left && own:
			s.add(it.pos, "%s takes a struct; describe %s in the doc tag of its field", t.fn, it.name)
		case left:
			s.add(it.pos, "%s has no parameter %s", t.fn, it.name)
		}
		delete(docs, it.name)
	}
}

// isArgumentStruct reports whether the fields of t are the arguments, rather than t being a single argument.
func isArgumentStruct(t types.Type) bool {
	_, ok := t.Underlying().(*types.Struct)
	return ok && !isNamed(t, "time", "Time")
}

// isNamed reports whether t is the named type path.name or an alias of it.
func isNamed(t types.Type, path, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == path && n.Obj().Name() == name
}

// isContextExpr reports whether an unresolved expression looks like context.Context, so that a missing import is not
// reported as a missing context parameter.
func isContextExpr(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Context"
}

// expandFields returns the type expression of each parameter or result.
func expandFields(list *ast.FieldList) []ast.Expr {
	var exprs []ast.Expr
	for _, f := range list.List {
		for range max(1, len(f.Names)) {
			exprs = append(exprs, f.Type)
		}
	}
	return exprs
}

// typeName returns the name of a type as written in the package.
func (s *source) typeName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == s.pkg {
			return ""
		}
		return p.Name()
	})
}
